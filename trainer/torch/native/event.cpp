// Events by libtorch's generic type. It makes the device's event at the first record, and checks and switches devices at
// each call: twice the cost of the runtime's own functions, which src/runtime.rs calls where it finds them.

#include <memory>

#include <c10/core/Event.h>

#include "guarded.h"
#include "shim.h"
#include "stream.h"

using dflash::as_c10;
using dflash::guarded;

char* dflash_event_new(bool timed, c10::Event** out) noexcept {
  return guarded([&] {
    // BACKEND_DEFAULT is what measures time; PYTORCH_DEFAULT only orders.
    const auto flag = timed ? c10::EventFlag::BACKEND_DEFAULT : c10::EventFlag::PYTORCH_DEFAULT;
    *out = std::make_unique<c10::Event>(dflash::kGpu, flag).release();
  });
}

void dflash_event_free(c10::Event* event) noexcept {
  delete event;
}

char* dflash_event_record(c10::Event* event, const DflashStream* stream) noexcept {
  return guarded([&] { event->record(as_c10(*stream)); });
}

char* dflash_event_query(const c10::Event* event, bool* done) noexcept {
  return guarded([&] { *done = event->query(); });
}

char* dflash_event_synchronize(const c10::Event* event) noexcept {
  return guarded([&] { event->synchronize(); });
}

char* dflash_event_block(const c10::Event* event, const DflashStream* stream) noexcept {
  return guarded([&] { event->block(as_c10(*stream)); });
}

char* dflash_event_elapsed(const c10::Event* begin, const c10::Event* end, double* ms) noexcept {
  return guarded([&] { *ms = begin->elapsedTime(*end); });
}
