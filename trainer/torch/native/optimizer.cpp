// The optimizer's step over many tensors at once, and what goes with it.

#include <ATen/ATen.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>
#include <c10/core/GradMode.h>

#include "guarded.h"
#include "kernels.h"
#include "shim.h"

using at::Tensor;

namespace {

std::vector<Tensor> list(const Tensor* const* tensors, size_t count) {
  std::vector<Tensor> all;
  all.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    all.push_back(*tensors[i]);
  }
  return all;
}

}  // namespace

char* dflash_norm_of_all(const Tensor* const* tensors, size_t count, Tensor** out) noexcept {
  return dflash::guarded([&] {
    c10::NoGradGuard guard;
    const auto norms = at::_foreach_norm(list(tensors, count), 2, at::kFloat);
    *out = new Tensor(at::stack(norms).norm());
  });
}

char* dflash_forget_gradient(Tensor* tensor) noexcept {
  return dflash::guarded([&] { tensor->mutable_grad() = Tensor(); });
}

char* dflash_adamw(const DflashAdamW* step, const Tensor* const tensors[5], const Tensor* scalars) noexcept {
  return dflash::guarded([&] {
    const auto &master = *tensors[0], &first = *tensors[1], &second = *tensors[2], &gradient = *tensors[3], &working = *tensors[4];
    const auto whole = gradient.contiguous();
    const auto& k = dflash::kernel("adamw", master);
    const auto f = [](double value) { return static_cast<float>(value); };
    dflash::launch(k, master, dflash::tiles(master.numel(), k.tile), 1, master.data_ptr(), first.data_ptr(),
                   second.data_ptr(), whole.data_ptr(), working.data_ptr(), scalars->data_ptr(), master.numel(),
                   f(1.0 - step->rate * step->weight_decay), f(1.0 - step->beta1), f(step->beta2), f(1.0 - step->beta2),
                   f(step->eps));
  });
}

char* dflash_fused_adamw(const DflashAdamWLists* l, size_t count, const DflashAdamW* s, const Tensor* divisor,
                         const Tensor* skip) noexcept {
  return dflash::guarded([&] {
    c10::NoGradGuard guard;
    auto masters = list(l->masters, count), gradients = list(l->gradients, count);
    auto firsts = list(l->firsts, count), seconds = list(l->seconds, count);
    const std::vector<Tensor> steps(count, *l->step);
    at::_fused_adamw_(masters, gradients, firsts, seconds, {}, steps, s->rate, s->beta1, s->beta2, s->weight_decay, s->eps,
                      /*amsgrad=*/false, /*maximize=*/false, *divisor, *skip);
  });
}
