// Kernel capture by libtorch's own profiler (Kineto over CUPTI), on all threads: `profile_all_threads` makes the state and
// the callbacks global, so lanes and autograd's threads are in the capture, and any thread may end it. On-demand state
// does the same, but leaves the trace to a daemon of Kineto's and hands nothing back.

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <ATen/record_function.h>
#include <libkineto.h>
#include <torch/csrc/autograd/profiler_kineto.h>

#include "guarded.h"
#include "shim.h"

using dflash::guarded;
using torch::autograd::profiler::ProfilerResult;
using torch::profiler::impl::ActivityType;
using torch::profiler::impl::ProfilerConfig;
using torch::profiler::impl::ProfilerState;
using torch::profiler::impl::ProfilerStateBase;

struct DflashTrace {
  std::unique_ptr<ProfilerResult> result;
  uint64_t kernels = 0;
  std::vector<DflashThread> threads;
};

namespace {

ProfilerConfig config() {
  torch::profiler::impl::ExperimentalConfig all_threads;
  all_threads.profile_all_threads = true;
  // No shapes, no memory, no stacks: what they cost distorts what is measured.
  return ProfilerConfig(ProfilerState::KINETO, false, false, false, false, false, std::move(all_threads));
}

std::set<ActivityType> activities(bool gpu) {
  return gpu ? std::set<ActivityType>{ActivityType::CPU, ActivityType::CUDA} : std::set<ActivityType>{ActivityType::CPU};
}

// Kineto wants its client, which libtorch registers as it is loaded, to come from the thread that makes the first capture,
// and complains on stderr about any other.
void adopt_client() {
  auto& kineto = libkineto::api();
  if (!kineto.isProfilerRegistered() && kineto.client()) {
    kineto.registerClient(kineto.client());
  }
}

// An operator that begins in a capture writes its end into the capture's memory whenever that comes: also after the
// capture, if another one runs then. So they are counted, and a capture ends with none in flight.
//
// Of the two callbacks one stands before libtorch's own and one behind it: the count goes up before an operator enters the
// capture, and down after it has left. An operator that began before the second was added has the first alone.
std::atomic<int64_t> in_flight{0};
at::CallbackHandle first_callback = at::INVALID_CALLBACK_HANDLE;
at::CallbackHandle last_callback = at::INVALID_CALLBACK_HANDLE;

struct Begun : public at::ObserverContext {
  bool followed = false;
};

struct Followed : public at::ObserverContext {};

// Between the two callbacks of one operator.
thread_local Begun* begun = nullptr;

std::unique_ptr<at::ObserverContext> enter_first(const at::RecordFunction&) {
  auto context = std::make_unique<Begun>();
  begun = context.get();
  in_flight.fetch_add(1);
  return context;
}

void leave_first(const at::RecordFunction&, at::ObserverContext* context) {
  auto* own = static_cast<Begun*>(context);
  if (begun == own) {
    begun = nullptr;
  }
  if (own && !own->followed) {
    in_flight.fetch_sub(1);
  }
}

std::unique_ptr<at::ObserverContext> enter_last(const at::RecordFunction&) {
  if (!begun) {
    return nullptr;
  }
  auto context = std::make_unique<Followed>();
  std::exchange(begun, nullptr)->followed = true;
  return context;
}

void leave_last(const at::RecordFunction&, at::ObserverContext* context) {
  if (context) {
    in_flight.fetch_sub(1);
  }
}

void forget(at::CallbackHandle& callback) {
  if (callback != at::INVALID_CALLBACK_HANDLE) {
    at::removeCallback(std::exchange(callback, at::INVALID_CALLBACK_HANDLE));
  }
}

// In this order, so that whatever has the last has the first.
void count_no_more() {
  forget(last_callback);
  forget(first_callback);
}

// A begin that failed halfway must not leave callbacks behind.
void abandon() noexcept {
  try {
    auto* state = ProfilerStateBase::get(/*global=*/true);
    if (state) {
      state->removeCallback();
    }
    count_no_more();
    // With operators in flight its memory is given up.
    if (state && in_flight.load() == 0) {
      torch::autograd::profiler::disableProfiler();
    }
  } catch (...) {
    // The first error is the one that is told.
  }
}

std::unique_ptr<DflashTrace> counted(std::unique_ptr<ProfilerResult> result) {
  auto trace = std::make_unique<DflashTrace>();
  std::map<int64_t, uint64_t> operators;
  for (const auto& event : result->events()) {
    switch (static_cast<libkineto::ActivityType>(event.activityType())) {
      case libkineto::ActivityType::CPU_OP:
        operators[event.deviceResourceId()] += 1;
        break;
      case libkineto::ActivityType::CONCURRENT_KERNEL:
      case libkineto::ActivityType::GPU_MEMCPY:
      case libkineto::ActivityType::GPU_MEMSET:
        trace->kernels += 1;
        break;
      default:
        break;
    }
  }
  for (const auto& [tid, count] : operators) {
    trace->threads.push_back(DflashThread{tid, count});
  }
  trace->result = std::move(result);
  return trace;
}

}  // namespace

bool dflash_capture_running() noexcept {
  try {
    return ProfilerStateBase::get() != nullptr;
  } catch (...) {
    return true;
  }
}

char* dflash_capture_prepare(bool gpu) noexcept {
  return guarded([&] {
    adopt_client();
    torch::autograd::profiler::prepareProfiler(config(), activities(gpu));
  });
}

char* dflash_capture_start(bool gpu) noexcept {
  char* error = guarded([&] {
    first_callback = at::addGlobalCallback(at::RecordFunctionCallback(enter_first, leave_first));
    torch::autograd::profiler::enableProfiler(config(), activities(gpu));
    last_callback = at::addGlobalCallback(at::RecordFunctionCallback(enter_last, leave_last));
  });
  if (error) {
    abandon();
  }
  return error;
}

char* dflash_capture_quiet() noexcept {
  return guarded([&] {
    auto* state = ProfilerStateBase::get(/*global=*/true);
    TORCH_CHECK(state, "no capture runs");
    state->removeCallback();
    count_no_more();
  });
}

int64_t dflash_capture_in_flight() noexcept {
  return in_flight.load();
}

char* dflash_capture_stop(DflashTrace** out) noexcept {
  return guarded([&] {
    TORCH_CHECK(ProfilerStateBase::get(/*global=*/true), "no capture runs");
    TORCH_CHECK(in_flight.load() == 0, "operators are in flight");
    auto result = torch::autograd::profiler::disableProfiler();
    TORCH_CHECK(result, "libtorch ended the capture without a result");
    *out = counted(std::move(result)).release();
  });
}

char* dflash_trace_save(DflashTrace* trace, const char* path) noexcept {
  return guarded([&] { trace->result->save(path); });
}

uint64_t dflash_trace_begin(const DflashTrace* trace) noexcept {
  return trace->result->trace_start_ns();
}

uint64_t dflash_trace_kernels(const DflashTrace* trace) noexcept {
  return trace->kernels;
}

size_t dflash_trace_threads(const DflashTrace* trace) noexcept {
  return trace->threads.size();
}

DflashThread dflash_trace_thread(const DflashTrace* trace, size_t index) noexcept {
  return trace->threads[index];
}

void dflash_trace_free(DflashTrace* trace) noexcept {
  delete trace;
}

char* dflash_as_operator(const char* name, void (*work)(void*), void* with) noexcept {
  return guarded([&] {
    RECORD_USER_SCOPE(name);
    work(with);
  });
}
