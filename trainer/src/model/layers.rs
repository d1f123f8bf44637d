//! The small layers that Llama, Qwen and the drafter are made of.

use tch::{Kind, Tensor};

/// `x · weightᵀ (+ bias)`; weight [out, in].
#[derive(Debug)]
pub struct Linear {
    /// [out, in]
    pub weight: Tensor,
    /// [out]
    pub bias: Option<Tensor>,
}

impl Linear {
    /// [.., in] -> [.., out]
    #[must_use]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        x.linear(&self.weight, self.bias.as_ref())
    }
}

/// Root-mean-square norm: computed in float32, the weight applied after rounding back (Hugging Face's order).
#[derive(Debug)]
pub struct RmsNorm {
    /// [width]
    pub weight: Tensor,
    /// Added to the mean square.
    pub eps: f64,
}

impl RmsNorm {
    /// [.., width] -> [.., width]
    #[must_use]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let wide = x.to_kind(Kind::Float);
        let mean_square = wide.square().mean_dim(-1, true, Kind::Float);
        let scale = (mean_square + self.eps).rsqrt();
        (wide * scale).to_kind(x.kind()) * &self.weight
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
    #[must_use]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        self.down.forward(&(self.gate.forward(x).silu() * self.up.forward(x)))
    }
}
