// Says when a weight's gradient is complete, while the backward pass still makes others.

#include <memory>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>

#include "guarded.h"
#include "shim.h"

using torch::autograd::variable_list;

namespace {

// Runs behind the node that adds up a weight's gradient, on the thread and the stream that it ran on.
struct Teller : torch::autograd::FunctionPostHook {
  Teller(void (*told)(void*, size_t), void* with, size_t number) : told(told), with(with), number(number) {}

  variable_list operator()(const variable_list& outputs, const variable_list&) override {
    told(with, number);
    return outputs;
  }

  void (*told)(void*, size_t);
  void* with;
  size_t number;
};

}  // namespace

struct DflashWatch {
  // A weight knows its node only as long as somebody holds it.
  std::shared_ptr<torch::autograd::Node> node;
  uintptr_t key;
};

char* dflash_gradient_watch(const at::Tensor* weight, void (*told)(void*, size_t), void* with, size_t number,
                            DflashWatch** out) noexcept {
  return dflash::guarded([&] {
    TORCH_CHECK(weight->is_leaf() && weight->requires_grad(), "only a leaf that wants a gradient has one");
    auto node = torch::autograd::impl::grad_accumulator(*weight);
    const auto key = node->add_post_hook(std::make_unique<Teller>(told, with, number));
    *out = new DflashWatch{std::move(node), key};
  });
}

void dflash_gradient_unwatch(DflashWatch* watch) noexcept {
  watch->node->del_post_hook(watch->key);
  delete watch;
}
