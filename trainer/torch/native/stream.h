// A stream from Rust's description to libtorch's own.
#pragma once

#include <c10/core/DeviceType.h>
#include <c10/core/Stream.h>

struct DflashStream;

namespace dflash {

inline constexpr c10::DeviceType kGpu = c10::DeviceType::CUDA;

c10::Stream as_c10(const DflashStream& stream);

}  // namespace dflash
