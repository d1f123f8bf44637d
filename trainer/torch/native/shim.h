// What Rust calls of libtorch: plain C functions over its device-generic headers, so that this compiles without CUDA.
//
// Rules of every function here:
//   - It returns null if it did its work, else the error's text: UTF-8, to be given back to dflash_text_free.
//   - No exception leaves it. What only frees cannot fail and returns nothing.
//   - A device is CUDA's (or, in a ROCm build of libtorch, HIP's: they share the name) and is named by its index.
// The declarations on the other side are in src/ffi.rs; keep them alike.
#pragma once

#include <cstddef>
#include <cstdint>

namespace c10 {
struct Event;
}

extern "C" {

void dflash_text_free(char* text) noexcept;

// ---- devices and streams (stream.cpp) -------------------------------------------------------------------------------

// A stream as libtorch names it, and as the device's own runtime does (cudaStream_t; null is the default stream).
struct DflashStream {
  int64_t id;
  void* native;
  int16_t device;
};

// GPUs that libtorch sees; 0 where CUDA's half of it is not loaded.
int16_t dflash_device_count() noexcept;
char* dflash_stream_current(int16_t device, DflashStream* out) noexcept;
char* dflash_stream_from_pool(int16_t device, bool high_priority, DflashStream* out) noexcept;
// Makes a stream the calling thread's current one of its device; `before` is the one that it was.
char* dflash_stream_exchange(const DflashStream* stream, DflashStream* before) noexcept;
char* dflash_stream_query(const DflashStream* stream, bool* done) noexcept;
char* dflash_stream_synchronize(const DflashStream* stream) noexcept;

// ---- events (event.cpp) ---------------------------------------------------------------------------------------------

char* dflash_event_new(bool timed, c10::Event** out) noexcept;
void dflash_event_free(c10::Event* event) noexcept;
char* dflash_event_record(c10::Event* event, const DflashStream* stream) noexcept;
char* dflash_event_query(const c10::Event* event, bool* done) noexcept;
char* dflash_event_synchronize(const c10::Event* event) noexcept;
char* dflash_event_block(const c10::Event* event, const DflashStream* stream) noexcept;
char* dflash_event_elapsed(const c10::Event* begin, const c10::Event* end, double* ms) noexcept;

// ---- the caching allocator (allocator.cpp) --------------------------------------------------------------------------

struct DflashAllocator {
  int64_t allocations;
  int64_t device_allocations;
  int64_t device_frees;
  int64_t retries;
  int64_t out_of_memory;
  int64_t reserved_bytes;
  int64_t active_bytes;
};

char* dflash_allocator_counters(int16_t device, DflashAllocator* out) noexcept;

// ---- kernel capture (kineto.cpp) ------------------------------------------------------------------------------------

// A thread whose operators are in a capture, and how many they are.
struct DflashThread {
  int64_t tid;
  uint64_t operators;
};

struct DflashTrace;

// Whether a profiler of libtorch runs already: everyone's, or the calling thread's.
bool dflash_capture_running() noexcept;
// The slow part of beginning, which sets CUPTI up; nothing is captured yet.
char* dflash_capture_prepare(bool gpu) noexcept;
char* dflash_capture_start(bool gpu) noexcept;
// Operators that begin from now on are not captured any more; those under way still end in the capture.
char* dflash_capture_quiet() noexcept;
// Operators that began in a capture and have not ended. While there are any, the capture cannot end: they write their end
// into its memory.
int64_t dflash_capture_in_flight() noexcept;
// Ends the capture, unless operators are in flight. The trace is the caller's.
char* dflash_capture_stop(DflashTrace** out) noexcept;
char* dflash_trace_save(DflashTrace* trace, const char* path) noexcept;
// Begin of the trace, in nanoseconds of the realtime clock.
uint64_t dflash_trace_begin(const DflashTrace* trace) noexcept;
// What ran on a GPU: kernels, copies, fills.
uint64_t dflash_trace_kernels(const DflashTrace* trace) noexcept;
size_t dflash_trace_threads(const DflashTrace* trace) noexcept;
DflashThread dflash_trace_thread(const DflashTrace* trace, size_t index) noexcept;
void dflash_trace_free(DflashTrace* trace) noexcept;
// Calls `work` with `with` inside of an operator of this name.
char* dflash_as_operator(const char* name, void (*work)(void*), void* with) noexcept;
}
