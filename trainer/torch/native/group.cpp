// Several processes: c10d's store, by which they find each other, and its Gloo, which sums tensors over them on CPUs.

#define USE_C10D_GLOO

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "guarded.h"
#include "shim.h"

using c10d::ProcessGroupGloo;
using dflash::guarded;
using std::chrono::milliseconds;

struct DflashStore {
  c10::intrusive_ptr<c10d::Store> store;
};

struct DflashGloo {
  c10::intrusive_ptr<ProcessGroupGloo> group;
};

namespace {

// As c10d's own tools choose: an interface by its name, if the user gave one.
std::shared_ptr<gloo::transport::Device> device(const char* address) {
  const char* interface = std::getenv("GLOO_SOCKET_IFNAME");
  return interface && *interface ? ProcessGroupGloo::createDeviceForInterface(interface)
                                 : ProcessGroupGloo::createDeviceForHostname(address);
}

}  // namespace

char* dflash_store_connect(const DflashRendezvous* at, DflashStore** out) noexcept {
  return guarded([&] {
    c10d::TCPStoreOptions options;
    options.port = at->port;
    options.isServer = at->server;
    options.waitWorkers = false;
    options.timeout = milliseconds(at->timeout_ms);
    auto tcp = c10::make_intrusive<c10d::TCPStore>(at->host, options);
    *out = new DflashStore{c10::make_intrusive<c10d::PrefixStore>(at->prefix, std::move(tcp))};
  });
}

char* dflash_store_set(const DflashStore* store, const char* key, const uint8_t* bytes, size_t count) noexcept {
  return guarded([&] { store->store->set(key, std::vector<uint8_t>(bytes, bytes + count)); });
}

char* dflash_store_has(const DflashStore* store, const char* key, bool* there) noexcept {
  return guarded([&] { *there = store->store->check({key}); });
}

char* dflash_store_get(const DflashStore* store, const char* key, uint8_t* bytes, size_t room, size_t* count) noexcept {
  return guarded([&] {
    const std::vector<uint8_t> value = store->store->get(key);
    *count = value.size();
    std::copy_n(value.begin(), std::min(room, value.size()), bytes);
  });
}

void dflash_store_free(DflashStore* store) noexcept {
  // Its destructor closes sockets and joins a thread; what that throws has nobody to go to.
  dflash_text_free(guarded([&] { delete store; }));
}

char* dflash_gloo_new(const DflashStore* store, const DflashMember* member, DflashGloo** out) noexcept {
  return guarded([&] {
    auto options = ProcessGroupGloo::Options::create(milliseconds(member->timeout_ms));
    options->devices.push_back(device(member->address));
    options->threads = 1;
    *out = new DflashGloo{
        c10::make_intrusive<ProcessGroupGloo>(store->store, member->rank, member->size, std::move(options))};
  });
}

char* dflash_gloo_sum(const DflashGloo* gloo, at::Tensor* tensor) noexcept {
  return guarded([&] {
    std::vector<at::Tensor> tensors{*tensor};
    gloo->group->allreduce(tensors)->wait();
  });
}

void dflash_gloo_free(DflashGloo* gloo) noexcept {
  dflash_text_free(guarded([&] { delete gloo; }));
}
