// Kernel capture by libtorch's own profiler (Kineto over CUPTI), on all threads: `profile_all_threads` makes the state and
// the callbacks global, so lanes and autograd's threads are in the capture, and any thread may end it. On-demand state
// does the same, but leaves the trace to a daemon of Kineto's and hands nothing back.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

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

// A begin that failed halfway must not leave callbacks behind.
void abandon() noexcept {
  try {
    if (ProfilerStateBase::get(/*global=*/true)) {
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
  char* error = guarded([&] { torch::autograd::profiler::enableProfiler(config(), activities(gpu)); });
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
  });
}

char* dflash_capture_stop(DflashTrace** out) noexcept {
  return guarded([&] {
    TORCH_CHECK(ProfilerStateBase::get(/*global=*/true), "no capture runs");
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
