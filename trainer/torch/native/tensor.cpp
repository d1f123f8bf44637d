// What tch does not say of tensors: which streams use them, and pages that the device may read by itself.

#include <ATen/ATen.h>

#include "guarded.h"
#include "shim.h"
#include "stream.h"

using at::Tensor;

char* dflash_tensor_record_stream(const Tensor* tensor, const DflashStream* stream) noexcept {
  return dflash::guarded([&] { tensor->record_stream(dflash::as_c10(*stream)); });
}

char* dflash_tensor_is_pinned(const Tensor* tensor, bool* out) noexcept {
  return dflash::guarded([&] { *out = tensor->is_pinned(); });
}

char* dflash_tensor_pinned(const int64_t* shape, size_t dims, int8_t kind, Tensor** out) noexcept {
  return dflash::guarded([&] {
    const auto options = at::TensorOptions().dtype(static_cast<at::ScalarType>(kind)).pinned_memory(true);
    *out = new Tensor(at::empty(at::IntArrayRef(shape, dims), options));
  });
}
