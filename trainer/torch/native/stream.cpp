// Devices and their streams, through the registry of device guards: CUDA's half of libtorch enters itself there when it is
// opened, so nothing here links to it.

#include <c10/core/Device.h>
#include <c10/core/Stream.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include "guarded.h"
#include "shim.h"
#include "stream.h"

using c10::impl::VirtualGuardImpl;
using dflash::guarded;
using dflash::kGpu;

namespace {

c10::Device gpu(int16_t index) {
  return c10::Device(kGpu, static_cast<c10::DeviceIndex>(index));
}

DflashStream described(const VirtualGuardImpl& guard, const c10::Stream& stream) {
  return DflashStream{stream.id(), guard.getStreamNativeHandle(stream), stream.device_index()};
}

}  // namespace

c10::Stream dflash::as_c10(const DflashStream& stream) {
  return c10::Stream(c10::Stream::UNSAFE, gpu(stream.device), stream.id);
}

void dflash_text_free(char* text) noexcept {
  if (text != dflash::out_of_memory) {
    free(text);
  }
}

int16_t dflash_device_count() noexcept {
  return c10::impl::hasDeviceGuardImpl(kGpu) ? c10::impl::getDeviceGuardImpl(kGpu)->deviceCount() : 0;
}

char* dflash_stream_current(int16_t device, DflashStream* out) noexcept {
  return guarded([&] {
    VirtualGuardImpl guard(kGpu);
    *out = described(guard, guard.getStream(gpu(device)));
  });
}

char* dflash_stream_from_pool(int16_t device, bool high_priority, DflashStream* out) noexcept {
  return guarded([&] {
    VirtualGuardImpl guard(kGpu);
    *out = described(guard, guard.getStreamFromGlobalPool(gpu(device), high_priority));
  });
}

char* dflash_stream_exchange(const DflashStream* stream, DflashStream* before) noexcept {
  return guarded([&] {
    VirtualGuardImpl guard(kGpu);
    *before = described(guard, guard.exchangeStream(dflash::as_c10(*stream)));
  });
}

char* dflash_stream_query(const DflashStream* stream, bool* done) noexcept {
  return guarded([&] { *done = dflash::as_c10(*stream).query(); });
}

char* dflash_stream_synchronize(const DflashStream* stream) noexcept {
  return guarded([&] { dflash::as_c10(*stream).synchronize(); });
}
