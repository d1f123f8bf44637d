//! The small layers that Llama, Qwen and the drafter are made of.

use super::kernels::sound;
use dflash_torch::fused;
use tch::{Kind, Tensor};

/// `x · weightᵀ (+ bias)`; weight [out, in].
#[derive(Debug)]
pub struct Linear {
    /// [out, in]
    pub weight: Tensor,
    /// `[out]`
    pub bias: Option<Tensor>,
}

impl Linear {
    /// [.., in] -> [.., out]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        linear(x, &self.weight, self.bias.as_ref())
    }
}

/// `x · weightᵀ (+ bias)`: [.., in] -> [.., out].
///
/// Always by one plain matrix product: for some strides of x (a part of a tensor, in a batch of one) libtorch's own
/// `linear` chooses a batched one, and copies the whole weight for it.
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
    let mut shape = x.size();
    let flat = x.reshape([-1, weight.size()[1]]).linear(weight, bias);
    if let Some(width) = shape.last_mut() {
        *width = weight.size()[0];
    }
    flat.view(&shape[..])
}

/// Root-mean-square norm: computed in float32, the weight applied after rounding back (Hugging Face's order).
#[derive(Debug)]
pub struct RmsNorm {
    /// `[width]`
    pub weight: Tensor,
    /// Added to the mean square.
    pub eps: f64,
}

impl RmsNorm {
    /// [.., width] -> [.., width]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        if self.fuses(x) {
            return sound(fused::norm(x, None, &self.weight, self.eps)).0;
        }
        let wide = x.to_kind(Kind::Float);
        let mean_square = wide.square().mean_dim(-1, true, Kind::Float);
        let scale = (mean_square + self.eps).rsqrt();
        (wide * scale).to_kind(x.kind()) * &self.weight
    }

    /// x + add, and its norm.
    pub fn after(&self, x: &Tensor, add: &Tensor) -> (Tensor, Tensor) {
        if self.fuses(x)
            && let (normed, Some(sum)) = sound(fused::norm(x, Some(add), &self.weight, self.eps))
        {
            return (sum, normed);
        }
        let sum = x + add;
        let normed = self.forward(&sum);
        (sum, normed)
    }

    fn fuses(&self, x: &Tensor) -> bool {
        fused::runs_on(x) && fused::norm_takes(self.weight.size()[0])
    }
}

/// SwiGLU: `down(silu(gate(x)) · up(x))`.
#[derive(Debug)]
pub struct Mlp {
    /// [ffn, D]
    pub gate: Linear,
    /// [ffn, D]
    pub up: Linear,
    /// [D, ffn]
    pub down: Linear,
}

impl Mlp {
    /// [.., D] -> [.., D]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let (gate, up) = (self.gate.forward(x), self.up.forward(x));
        self.down.forward(&if fused::runs_on(&gate) { sound(fused::swiglu(&gate, &up)) } else { gate.silu() * up })
    }
}
