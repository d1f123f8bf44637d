// Operators of our own kernels, with their gradients. Rust asks only where they can run (src/fused.rs); what is wrong all the
// same is said, not guessed at.

#include <optional>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include "guarded.h"
#include "kernels.h"
#include "shim.h"

using at::Tensor;
using dflash::kernel;
using dflash::launch;
using dflash::tiles;
using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

namespace {

// Programs that share a sum over all rows: four on each of an H200's 132 multiprocessors.
constexpr int64_t kPrograms = 528;

int32_t narrow(int64_t value) {
  TORCH_CHECK(value >= 0 && value <= INT32_MAX, "a size of ", value, " is beyond 32 bits");
  return static_cast<int32_t>(value);
}

std::string sized(const char* name, int64_t size) {
  return std::string(name) + "_" + std::to_string(size);
}

int64_t block_of(int64_t width) {
  int64_t block = 1024;
  while (block < width) {
    block *= 2;
  }
  return block;
}

// x [.., width]; with `add` the norm of x + add.
struct Norm : Function<Norm> {
  static variable_list forward(AutogradContext* context, const Tensor& x_, const std::optional<Tensor>& add_,
                               const Tensor& weight, double eps) {
    const auto x = x_.contiguous();
    const bool adds = add_.has_value();
    const auto add = adds ? add_->contiguous() : x;
    const auto width = x.size(-1);
    const auto rows = x.numel() / width;
    const auto sum = adds ? at::empty_like(x) : x;
    const auto out = at::empty_like(x);
    const auto& k = kernel(sized(adds ? "add_norm_forward" : "norm_forward", block_of(width)), x);
    launch(k, x, rows, 1, x.data_ptr(), add.data_ptr(), weight.data_ptr(), sum.data_ptr(), out.data_ptr(), narrow(width),
           static_cast<float>(eps));
    context->save_for_backward({sum, weight});
    context->saved_data["eps"] = eps;
    context->saved_data["adds"] = adds;
    return adds ? variable_list{out, sum} : variable_list{out};
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &weight = saved[1];
    const bool adds = context->saved_data["adds"].toBool();
    if (!gradients[0].defined()) {
      const auto through = adds ? gradients[1] : Tensor();
      return {through, through, Tensor(), Tensor()};
    }
    const auto width = x.size(-1);
    const auto rows = x.numel() / width;
    const bool both = adds && gradients[1].defined();
    const auto dout = gradients[0].contiguous();
    const auto dsum = both ? gradients[1].contiguous() : dout;
    const auto dx = at::empty_like(x);
    const auto programs = std::min(kPrograms, rows);
    const auto part = at::empty({programs, width}, x.options().dtype(at::kFloat));
    const auto& k = kernel(sized(both ? "add_norm_backward" : "norm_backward", block_of(width)), x);
    launch(k, x, programs, 1, x.data_ptr(), weight.data_ptr(), dout.data_ptr(), dsum.data_ptr(), dx.data_ptr(),
           part.data_ptr(), narrow(rows), narrow(width), static_cast<float>(context->saved_data["eps"].toDouble()));
    // Inputs that are not there are not counted.
    const auto dweight = context->needs_input_grad(adds ? 2 : 1) ? part.sum(0).to(weight.scalar_type()) : Tensor();
    return {dx, adds ? dx : Tensor(), dweight, Tensor()};
  }
};

// x [b, rows, heads * d] -> [b, rows, heads, d], each head normed (with a weight) and rotated.
struct Rope : Function<Rope> {
  static Tensor forward(AutogradContext* context, const Tensor& x_, const std::optional<Tensor>& weight_, const Tensor& cos,
                        const Tensor& sin, const Tensor& position, double eps) {
    const auto x = x_.contiguous();
    const auto weight = weight_.value_or(Tensor());
    const auto d = cos.size(-1);
    const auto heads = x.size(-1) / d;
    const auto out = at::empty({x.size(0), x.size(1), heads, d}, x.options());
    const auto total = x.numel() / d;
    const auto& k = kernel(sized(weight.defined() ? "rope_norm_forward" : "rope_forward", d), x);
    const auto* weights = weight.defined() ? weight.data_ptr() : cos.data_ptr();
    launch(k, x, tiles(total, k.tile), 1, x.data_ptr(), weights, cos.data_ptr(), sin.data_ptr(), position.data_ptr(),
           out.data_ptr(), narrow(total), narrow(heads), narrow(heads * d), static_cast<float>(eps));
    context->save_for_backward({weight.defined() ? x : Tensor(), weight, cos, sin, position});
    context->saved_data["eps"] = eps;
    context->saved_data["shape"] = x.sizes().vec();
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &weight = saved[1], &cos = saved[2], &sin = saved[3], &position = saved[4];
    const auto dout = gradients[0].contiguous();
    const auto d = cos.size(-1);
    const auto heads = dout.size(2);
    const auto total = dout.numel() / d;
    const auto dx = at::empty(context->saved_data["shape"].toIntVector(), dout.options());
    const auto& k = kernel(sized(weight.defined() ? "rope_norm_backward" : "rope_backward", d), dout);
    const auto programs = std::min(kPrograms, tiles(total, k.tile));
    const auto part = at::empty({programs, d}, dout.options().dtype(at::kFloat));
    const auto* inputs = weight.defined() ? x.data_ptr() : dout.data_ptr();
    const auto* weights = weight.defined() ? weight.data_ptr() : cos.data_ptr();
    launch(k, dout, programs, 1, inputs, weights, cos.data_ptr(), sin.data_ptr(), position.data_ptr(), dout.data_ptr(),
           dx.data_ptr(), part.data_ptr(), narrow(total), narrow(heads), narrow(heads * d),
           static_cast<float>(context->saved_data["eps"].toDouble()));
    const bool wanted = weight.defined() && context->needs_input_grad(1);
    const auto dweight = wanted ? part.sum(0).to(weight.scalar_type()) : Tensor();
    return {dx, dweight, Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

struct Swiglu : Function<Swiglu> {
  static Tensor forward(AutogradContext* context, const Tensor& gate_, const Tensor& up_) {
    const auto gate = gate_.contiguous(), up = up_.contiguous();
    const auto out = at::empty_like(gate);
    const auto& k = kernel("swiglu_forward", gate);
    launch(k, gate, tiles(gate.numel(), k.tile), 1, gate.data_ptr(), up.data_ptr(), out.data_ptr(), gate.numel());
    context->save_for_backward({gate, up});
    return out;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto &gate = saved[0], &up = saved[1];
    const auto dout = gradients[0].contiguous();
    const auto dgate = at::empty_like(gate), dup = at::empty_like(up);
    const auto& k = kernel("swiglu_backward", gate);
    launch(k, gate, tiles(gate.numel(), k.tile), 1, gate.data_ptr(), up.data_ptr(), dout.data_ptr(), dgate.data_ptr(),
           dup.data_ptr(), gate.numel());
    return {dgate, dup};
  }
};

// How blocks see: blocks a row of the batch, tokens a block, the sliding window, whether a block is causal in itself.
struct Sight {
  int64_t blocks;
  int64_t block;
  int64_t window;
  bool causal;
};

// q [b, N * B, H, d]; context k, v [b, S, G, d]; own k, v [b, N * B, G, d]; anchor, low [b, N].
struct Attend : Function<Attend> {
  static Tensor forward(AutogradContext* context, const Tensor& q_, const Tensor& kc_, const Tensor& vc_, const Tensor& kb_,
                        const Tensor& vb_, const Tensor& anchor_, const Tensor& low_, int64_t block, int64_t window, bool causal) {
    const auto q = q_.contiguous(), kc = kc_.contiguous(), vc = vc_.contiguous(), kb = kb_.contiguous(), vb = vb_.contiguous();
    const auto anchor = anchor_.contiguous(), low = low_.contiguous();
    const auto b = q.size(0), total = q.size(1), heads = q.size(2), d = q.size(3), groups = kc.size(2), s = kc.size(1);
    const auto out = at::empty_like(q);
    const auto lse = at::empty({b, heads, total}, q.options().dtype(at::kFloat));
    const auto q_step = narrow(heads * d), k_step = narrow(groups * d);
    const auto& k = kernel(sized("attend_forward", d), q);
    launch(k, q, tiles(total, k.tile), b * heads, q.data_ptr(), kc.data_ptr(), vc.data_ptr(), kb.data_ptr(), vb.data_ptr(),
           anchor.data_ptr(), low.data_ptr(), out.data_ptr(), lse.data_ptr(), q_step, k_step, k_step, k_step, k_step,
           narrow(s), narrow(total / block), narrow(block), narrow(window), static_cast<int32_t>(causal), scale(d),
           narrow(heads), narrow(heads / groups));
    context->save_for_backward({q, kc, vc, kb, vb, anchor, low, out, lse});
    context->saved_data["block"] = block;
    context->saved_data["window"] = window;
    context->saved_data["causal"] = causal;
    return out;
  }

  static float scale(int64_t d) {
    return 1.0F / std::sqrt(static_cast<float>(d));
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto &q = saved[0], &kc = saved[1], &vc = saved[2], &kb = saved[3], &vb = saved[4];
    const auto &anchor = saved[5], &low = saved[6], &out = saved[7], &lse = saved[8];
    const auto dout = gradients[0].contiguous();
    const auto b = q.size(0), total = q.size(1), heads = q.size(2), d = q.size(3), groups = kc.size(2), s = kc.size(1);
    const auto block = narrow(context->saved_data["block"].toInt()), window = narrow(context->saved_data["window"].toInt());
    const auto causal = static_cast<int32_t>(context->saved_data["causal"].toBool());
    const auto q_step = narrow(heads * d), k_step = narrow(groups * d), blocks = narrow(total / block);
    const auto repeat = narrow(heads / groups);

    const auto delta = at::empty_like(lse);
    const auto& sums = kernel(sized("attend_delta", d), q);
    launch(sums, q, tiles(total, sums.tile), b * heads, out.data_ptr(), dout.data_ptr(), delta.data_ptr(), narrow(total),
           narrow(heads));

    const auto dq = at::empty_like(q);
    const auto& of_q = kernel(sized("attend_backward_q", d), q);
    launch(of_q, q, tiles(total, of_q.tile), b * heads, q.data_ptr(), kc.data_ptr(), vc.data_ptr(), kb.data_ptr(),
           vb.data_ptr(), anchor.data_ptr(), low.data_ptr(), dout.data_ptr(), lse.data_ptr(), delta.data_ptr(),
           dq.data_ptr(), q_step, k_step, k_step, k_step, k_step, narrow(s), blocks, block, window, causal, scale(d),
           narrow(heads), repeat);

    const auto part = at::empty({2, b, s, groups, repeat, d}, q.options().dtype(at::kFloat));
    const auto& of_context = kernel(sized("attend_backward_context", d), q);
    launch(of_context, q, tiles(s, of_context.keys), b * heads, q.data_ptr(), kc.data_ptr(), vc.data_ptr(),
           anchor.data_ptr(), low.data_ptr(), dout.data_ptr(), lse.data_ptr(), delta.data_ptr(), part.data_ptr(), q_step,
           k_step, k_step, narrow(b), narrow(s), blocks, block, window, scale(d), narrow(heads), repeat);
    const auto contexts = part.sum(4).to(kc.scalar_type());

    const auto dkb = at::empty_like(kb), dvb = at::empty_like(vb);
    const auto& own = kernel(sized("attend_backward_own", d), q);
    launch(own, q, tiles(total, own.tile), b * groups, q.data_ptr(), kb.data_ptr(), vb.data_ptr(), dout.data_ptr(),
           lse.data_ptr(), delta.data_ptr(), dkb.data_ptr(), dvb.data_ptr(), q_step, k_step, k_step, blocks, block, causal,
           scale(d), narrow(heads), repeat);
    return {dq, contexts[0], contexts[1], dkb, dvb, Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
  }
};

// An undefined tensor would be taken for an input.
std::optional<Tensor> given(const Tensor* tensor) {
  return tensor ? std::optional<Tensor>(*tensor) : std::nullopt;
}

}  // namespace

char* dflash_norm(const Tensor* x, const Tensor* add, const Tensor* weight, double eps, Tensor** out, Tensor** sum) noexcept {
  return dflash::guarded([&] {
    auto made = Norm::apply(*x, given(add), *weight, eps);
    *out = new Tensor(std::move(made[0]));
    if (add) {
      *sum = new Tensor(std::move(made[1]));
    }
  });
}

char* dflash_rope(const Tensor* x, const Tensor* weight, const Tensor* cos, const Tensor* sin, const Tensor* position,
                  double eps, Tensor** out) noexcept {
  return dflash::guarded([&] { *out = new Tensor(Rope::apply(*x, given(weight), *cos, *sin, *position, eps)); });
}

char* dflash_swiglu(const Tensor* gate, const Tensor* up, Tensor** out) noexcept {
  return dflash::guarded([&] { *out = new Tensor(Swiglu::apply(*gate, *up)); });
}

char* dflash_attend(const Tensor* const inputs[7], int64_t block, int64_t window, bool causal, Tensor** out) noexcept {
  return dflash::guarded([&] {
    *out = new Tensor(Attend::apply(*inputs[0], *inputs[1], *inputs[2], *inputs[3], *inputs[4], *inputs[5], *inputs[6], block,
                                    window, causal));
  });
}

char* dflash_cross_entropy(const Tensor* logits, const Tensor* label, const Tensor* weight, Tensor** loss, Tensor** best) noexcept {
  return dflash::guarded([&] {
    const auto rows = logits->size(0), width = logits->size(1);
    TORCH_CHECK(logits->is_contiguous() && label->is_contiguous() && weight->is_contiguous(), "rows with gaps");
    auto losses = at::empty({rows}, logits->options().dtype(at::kFloat));
    auto likeliest = at::empty({rows}, logits->options().dtype(at::kLong));
    launch(kernel("cross_entropy", *logits), *logits, rows, 1, logits->data_ptr(), label->data_ptr(), weight->data_ptr(),
           losses.data_ptr(), likeliest.data_ptr(), narrow(width), narrow(width));
    *loss = new Tensor(std::move(losses));
    *best = new Tensor(std::move(likeliest));
  });
}
