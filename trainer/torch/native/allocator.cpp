// The caching allocator's counters, which it keeps anyway.

#include <c10/core/CachingDeviceAllocator.h>

#include "guarded.h"
#include "shim.h"
#include "stream.h"

using c10::CachingAllocator::StatType;

namespace {

c10::DeviceAllocator& allocator() {
  auto* found = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(dflash::kGpu));
  TORCH_CHECK(found, "libtorch has no caching allocator for a GPU here");
  return *found;
}

}  // namespace

char* dflash_allocator_counters(int16_t device, DflashAllocator* out) noexcept {
  return dflash::guarded([&] {
    auto& source = allocator();
    // Before the first tensor on a GPU it keeps no counters, and refuses to say so: nothing has happened yet.
    if (!source.initialized()) {
      *out = DflashAllocator{};
      return;
    }
    const auto stats = source.getDeviceStats(static_cast<c10::DeviceIndex>(device));
    constexpr auto all = static_cast<size_t>(StatType::AGGREGATE);
    *out = DflashAllocator{
        stats.allocation[all].allocated, stats.num_device_alloc, stats.num_device_free, stats.num_alloc_retries,
        stats.num_ooms, stats.reserved_bytes[all].current, stats.active_bytes[all].current};
  });
}
