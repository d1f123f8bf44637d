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

namespace at {
class Tensor;
}
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

// ---- tensors (tensor.cpp) -------------------------------------------------------------------------------------------

// The memory is not used again before the work that `stream` has when the tensor is freed is done.
char* dflash_tensor_record_stream(const at::Tensor* tensor, const DflashStream* stream) noexcept;
char* dflash_tensor_is_pinned(const at::Tensor* tensor, bool* out) noexcept;
// A tensor in main memory that the device can read and write by itself; `kind` is libtorch's ScalarType.
char* dflash_tensor_pinned(const int64_t* shape, size_t dims, int8_t kind, at::Tensor** out) noexcept;

// ---- gradients (gradient.cpp) ---------------------------------------------------------------------------------------

struct DflashWatch;
// Calls `told` with `with` and `number` each time the weight's gradient is complete, on the thread of the backward pass.
char* dflash_gradient_watch(const at::Tensor* weight, void (*told)(void*, size_t), void* with, size_t number,
                            DflashWatch** out) noexcept;
// While no backward pass is under way.
void dflash_gradient_unwatch(DflashWatch* watch) noexcept;

// ---- our own kernels (kernels.cpp, fused.cpp) -----------------------------------------------------------------------

struct DflashKernel {
  uint32_t threads;
  uint32_t shared;
  int32_t tile;
  int32_t keys;
};

// `bytes` must stay where it is.
char* dflash_kernel_register(const char* name, const char* entry, const void* bytes, DflashKernel shape) noexcept;
// Ten times the major version of a GPU's instructions, plus the minor one.
char* dflash_device_capability(int16_t device, int32_t* out) noexcept;

// Tensors that come out are the caller's. `add` and `weight` may be null.
char* dflash_norm(const at::Tensor* x, const at::Tensor* add, const at::Tensor* weight, double eps, at::Tensor** out,
                  at::Tensor** sum) noexcept;
char* dflash_rope(const at::Tensor* x, const at::Tensor* weight, const at::Tensor* cos, const at::Tensor* sin,
                  const at::Tensor* position, double eps, at::Tensor** out) noexcept;
char* dflash_swiglu(const at::Tensor* gate, const at::Tensor* up, at::Tensor** out) noexcept;
// q; keys and values of the context; keys and values of the blocks; anchors; first rows that are seen.
char* dflash_attend(const at::Tensor* const inputs[7], int64_t block, int64_t window, bool causal, at::Tensor** out) noexcept;
// Overwrites the logits with their gradient.
char* dflash_cross_entropy(const at::Tensor* logits, const at::Tensor* label, const at::Tensor* weight, at::Tensor** loss,
                           at::Tensor** best) noexcept;

// ---- libtorch's attention (attention.cpp) ----------------------------------------------------------------------------

struct DflashAttention {
  bool math;
  bool flash;
  bool efficient;
  bool cudnn;
};

// For the whole process.
char* dflash_attention_allow(DflashAttention kernels) noexcept;
char* dflash_attention_allowed(DflashAttention* out) noexcept;

// ---- the optimizer (optimizer.cpp) ----------------------------------------------------------------------------------

struct DflashAdamW {
  double rate;
  double weight_decay;
  double beta1;
  double beta2;
  double eps;
};

struct DflashAdamWLists {
  const at::Tensor* const* masters;
  const at::Tensor* const* gradients;
  const at::Tensor* const* firsts;
  const at::Tensor* const* seconds;
  // Number of the step, a float scalar on the device.
  const at::Tensor* step;
};

// The norm of all tensors together, a float scalar on their device. Waits for nothing.
char* dflash_norm_of_all(const at::Tensor* const* tensors, size_t count, at::Tensor** out) noexcept;
// The next backward pass makes the gradient anew instead of adding to it.
char* dflash_forget_gradient(at::Tensor* tensor) noexcept;
// Our own kernel: master, moments, gradient, working weights; `scalars` as kernels/rows.py says.
char* dflash_adamw(const DflashAdamW* step, const at::Tensor* const tensors[5], const at::Tensor* scalars) noexcept;
// libtorch's: gradients are divided by `divisor` first, in place; nothing is done where `skip` is not 0.
char* dflash_fused_adamw(const DflashAdamWLists* lists, size_t count, const DflashAdamW* step, const at::Tensor* divisor,
                         const at::Tensor* skip) noexcept;

// ---- several processes (group.cpp) ----------------------------------------------------------------------------------

struct DflashStore;
struct DflashGloo;

// Where c10d's TCPStore is; `server`: this process holds it. Texts end with NUL.
struct DflashRendezvous {
  const char* host;
  const char* prefix;
  int64_t timeout_ms;
  uint16_t port;
  bool server;
};

// Which of `size` processes this is, and the address by which the others reach it.
struct DflashMember {
  const char* address;
  int64_t timeout_ms;
  int32_t rank;
  int32_t size;
};

char* dflash_store_connect(const DflashRendezvous* at, DflashStore** out) noexcept;
char* dflash_store_has(const DflashStore* store, const char* key, bool* there) noexcept;
char* dflash_store_set(const DflashStore* store, const char* key, const uint8_t* bytes, size_t count) noexcept;
// Waits until somebody has set it, for the store's time-out at most. What finds no room is left out; `count` says how much
// there is.
char* dflash_store_get(const DflashStore* store, const char* key, uint8_t* bytes, size_t room, size_t* count) noexcept;
void dflash_store_free(DflashStore* store) noexcept;
// Waits until all members have made theirs.
char* dflash_gloo_new(const DflashStore* store, const DflashMember* member, DflashGloo** out) noexcept;
// In place; of a contiguous tensor in main memory.
char* dflash_gloo_sum(const DflashGloo* gloo, at::Tensor* tensor) noexcept;
void dflash_gloo_free(DflashGloo* gloo) noexcept;
}
