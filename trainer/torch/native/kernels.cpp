// Kernels by the driver's own functions, found in the process at run time: nothing here links to CUDA.

#include "kernels.h"

#include <map>
#include <mutex>

#include <dlfcn.h>

#include <c10/core/impl/VirtualGuardImpl.h>

#include "guarded.h"
#include "shim.h"
#include "stream.h"

namespace {

// libcuda's functions, by the signatures of cuda.h; a CUresult, a CUdevice and an attribute are ints, the rest pointers.
struct Driver {
  int (*device_get)(int*, int);
  int (*attribute)(int*, int, int);
  int (*context_current)(void**);
  int (*context_set)(void*);
  int (*primary_retain)(void**, int);
  int (*module_load)(void**, const void*);
  int (*function_get)(void**, void*, const char*);
  int (*function_attribute)(void*, int, int);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**);
  int (*words)(int, const char**);
};

template <typename F>
void find(void* library, const char* name, F& into) {
  into = reinterpret_cast<F>(dlsym(library, name));
  TORCH_CHECK(into, "libcuda.so.1 has no ", name);
}

const Driver& driver() {
  static const Driver found = [] {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    TORCH_CHECK(library, "libcuda.so.1 could not be opened: is the driver installed?");
    Driver d{};
    find(library, "cuDeviceGet", d.device_get);
    find(library, "cuDeviceGetAttribute", d.attribute);
    find(library, "cuCtxGetCurrent", d.context_current);
    find(library, "cuCtxSetCurrent", d.context_set);
    find(library, "cuDevicePrimaryCtxRetain", d.primary_retain);
    find(library, "cuModuleLoadData", d.module_load);
    find(library, "cuModuleGetFunction", d.function_get);
    find(library, "cuFuncSetAttribute", d.function_attribute);
    find(library, "cuLaunchKernel", d.launch);
    find(library, "cuGetErrorString", d.words);
    return d;
  }();
  return found;
}

void check(const char* doing, int code) {
  if (code == 0) {
    return;
  }
  const char* words = nullptr;
  driver().words(code, &words);
  TORCH_CHECK(false, doing, ": ", words ? words : "an unknown error", " (", code, ")");
}

// A thread that has not worked on the GPU yet has no context of it.
void need_context(int index) {
  void* context = nullptr;
  check("asking for the context", driver().context_current(&context));
  if (context) {
    return;
  }
  int device = 0;
  check("finding the device", driver().device_get(&device, index));
  check("retaining the context", driver().primary_retain(&context, device));
  check("setting the context", driver().context_set(context));
}

struct Image {
  std::string entry;
  const void* bytes;
  dflash::Kernel kernel;
};

std::mutex mutex;
std::map<std::string, Image>& images() {
  static std::map<std::string, Image> all;
  return all;
}

constexpr int kMaxDynamicShared = 8;
constexpr int kMajor = 75;
constexpr int kMinor = 76;

dflash::Kernel load(const std::string& name, int index) {
  const auto at = images().find(name);
  TORCH_CHECK(at != images().end(), "there is no kernel ", name);
  need_context(index);
  auto kernel = at->second.kernel;
  void* module = nullptr;
  check("loading a kernel", driver().module_load(&module, at->second.bytes));
  check("finding a kernel", driver().function_get(&kernel.function, module, at->second.entry.c_str()));
  // Above 48 KiB a kernel must ask for its shared memory.
  check("a kernel's shared memory",
        driver().function_attribute(kernel.function, kMaxDynamicShared, static_cast<int>(kernel.shared)));
  return kernel;
}

// The thread is back on its own device however the work there ends.
class OnDevice {
 public:
  explicit OnDevice(c10::Device device) : guard_(dflash::kGpu), before_(guard_.exchangeDevice(device)) {}
  ~OnDevice() { guard_.uncheckedSetDevice(before_); }
  OnDevice(const OnDevice&) = delete;
  OnDevice& operator=(const OnDevice&) = delete;

 private:
  c10::impl::VirtualGuardImpl guard_;
  c10::Device before_;
};

}  // namespace

const dflash::Kernel& dflash::kernel(const std::string& name, const at::Tensor& like) {
  static std::map<std::pair<std::string, int>, Kernel> loaded;
  const auto device = like.device();
  const OnDevice there(device);
  std::lock_guard<std::mutex> lock(mutex);
  auto at = loaded.find({name, device.index()});
  if (at == loaded.end()) {
    at = loaded.emplace(std::make_pair(name, device.index()), load(name, device.index())).first;
  }
  return at->second;
}

void dflash::launch_raw(const Kernel& kernel, const at::Tensor& like, unsigned x, unsigned y, void** arguments) {
  if (x == 0 || y == 0) {
    return;
  }
  c10::impl::VirtualGuardImpl guard(kGpu);
  const auto device = like.device();
  const OnDevice there(device);
  need_context(device.index());
  void* stream = guard.getStreamNativeHandle(guard.getStream(device));
  check("launching a kernel",
        driver().launch(kernel.function, x, y, 1, kernel.threads, 1, 1, kernel.shared, stream, arguments, nullptr));
}

char* dflash_kernel_register(const char* name, const char* entry, const void* bytes, DflashKernel shape) noexcept {
  return dflash::guarded([&] {
    std::lock_guard<std::mutex> lock(mutex);
    const dflash::Kernel kernel{nullptr, shape.threads, shape.shared, shape.tile, shape.keys};
    images().insert_or_assign(name, Image{entry, bytes, kernel});
  });
}

char* dflash_device_capability(int16_t device, int32_t* out) noexcept {
  return dflash::guarded([&] {
    int handle = 0;
    int major = 0;
    int minor = 0;
    check("finding the device", driver().device_get(&handle, device));
    check("the device's capability", driver().attribute(&major, kMajor, handle));
    check("the device's capability", driver().attribute(&minor, kMinor, handle));
    *out = major * 10 + minor;
  });
}
