// Our own kernels: images that Rust has registered, loaded on a device when first asked for.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <ATen/core/Tensor.h>

namespace dflash {

// A kernel that is loaded on a device.
struct Kernel {
  void* function;
  unsigned threads;
  unsigned shared;
  // How many rows (and keys) a program takes; what else the name's constants say.
  int64_t tile;
  int64_t keys;
};

// The kernel of this name on the device of `like`. Throws if there is none.
const Kernel& kernel(const std::string& name, const at::Tensor& like);

// On the calling thread's current stream of the device of `like`.
void launch_raw(const Kernel& kernel, const at::Tensor& like, unsigned x, unsigned y, void** arguments);

inline int64_t tiles(int64_t total, int64_t tile) {
  return (total + tile - 1) / tile;
}

// Arguments must have the kernel's own types: pointers, int32_t, int64_t, float.
template <typename... Arguments>
void launch(const Kernel& kernel, const at::Tensor& like, int64_t x, int64_t y, Arguments... arguments) {
  // Triton's kernels end with two pointers to scratch memory, which ours do not use.
  void* scratch[2] = {nullptr, nullptr};
  void* list[] = {static_cast<void*>(&arguments)..., &scratch[0], &scratch[1]};
  launch_raw(kernel, like, static_cast<unsigned>(x), static_cast<unsigned>(y), list);
}

}  // namespace dflash
