// Which of its kernels libtorch may take for scaled_dot_product_attention: switches of the process, not of a call.

#include <ATen/Context.h>

#include "guarded.h"
#include "shim.h"

char* dflash_attention_allow(DflashAttention kernels) noexcept {
  return dflash::guarded([&] {
    auto& context = at::globalContext();
    context.setSDPUseMath(kernels.math);
    context.setSDPUseFlash(kernels.flash);
    context.setSDPUseMemEfficient(kernels.efficient);
    context.setSDPUseCuDNN(kernels.cudnn);
  });
}

char* dflash_attention_allowed(DflashAttention* out) noexcept {
  return dflash::guarded([&] {
    const auto& context = at::globalContext();
    *out = {context.userEnabledMathSDP(), context.userEnabledFlashSDP(), context.userEnabledMemEfficientSDP(),
            context.userEnabledCuDNNSDP()};
  });
}
