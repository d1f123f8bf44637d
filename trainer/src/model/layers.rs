//! The small layers that Llama, Qwen and the drafter are made of.

use super::kernels::sound;
use dflash_torch::fused;
use tch::{Device, Kind, Tensor};

/// `x · weightᵀ (+ bias)`; weight [out, in].
#[derive(Debug)]
pub struct Linear {
    /// [out, in]
    pub weight: Tensor,
    /// `[out]`
    pub bias: Option<Tensor>,
}

impl Linear {
    /// The same weights once more, not copied.
    pub(crate) fn shared(&self) -> Self {
        Self { weight: self.weight.shallow_clone(), bias: self.bias.as_ref().map(Tensor::shallow_clone) }
    }

    /// [.., in] -> [.., out]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        linear(x, &self.weight, self.bias.as_ref())
    }
}

/// `x · weightᵀ (+ bias)`: [.., in] -> [.., out].
///
/// Always by one plain matrix product: for some strides of x (a part of a tensor, in a batch of one) libtorch's own
/// `linear` chooses a batched one, and copies the whole weight for it.
///
/// A row's result does not depend on whether others are checked with it, in bfloat16 on a CPU: there a row alone would be
/// multiplied by another kernel, which adds up long rows in another order, and decoding token by token would round otherwise
/// than checking a draft. With AVX-512's products that holds for any number of rows; with AMX some 130 rows and more are
/// another kernel's again.
pub fn linear(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Tensor {
    let mut shape = x.size();
    let flat = x.reshape([-1, weight.size()[1]]);
    let alone = flat.size()[0] == 1 && flat.device() == Device::Cpu && flat.kind() == Kind::BFloat16;
    let flat = if alone {
        flat.expand([2, -1], false).linear(weight, bias).narrow(0, 0, 1)
    } else {
        flat.linear(weight, bias)
    };
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
    /// The same weight once more, not copied.
    pub(crate) fn shared(&self) -> Self {
        Self { weight: self.weight.shallow_clone(), eps: self.eps }
    }

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
    /// The same weights once more, not copied.
    pub(crate) fn shared(&self) -> Self {
        Self { gate: self.gate.shared(), up: self.up.shared(), down: self.down.shared() }
    }

    /// [.., D] -> [.., D]
    pub fn forward(&self, x: &Tensor) -> Tensor {
        let (gate, up) = (self.gate.forward(x), self.up.forward(x));
        self.down.forward(&if fused::runs_on(&gate) { sound(fused::swiglu(&gate, &up)) } else { gate.silu() * up })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of 200 rows of 1,536 numbers, a plain product rounds some 20 of 115,200 results otherwise where a row is alone.
    #[test]
    fn a_row_is_multiplied_alone_as_beside_others() {
        let random = |shape: [i64; 2], seed: f64| {
            let count = shape[0] * shape[1];
            let wave = (Tensor::arange(count, (Kind::Double, Device::Cpu)) * seed).sin() * 3.0;
            wave.view(shape).to_kind(Kind::BFloat16)
        };
        let (rows, weight) = (random([200, 1536], 1.37), random([576, 1536], 0.917) * 0.02);
        let by = |count: i64| {
            let part = |first: i64| linear(&rows.narrow(0, first * count, count), &weight, None);
            Tensor::cat(&(0..200 / count).map(part).collect::<Vec<_>>(), 0)
        };
        let alone = by(1);
        assert!(alone.equal(&by(2)));
        // What a CPU without such products does with more rows is not known here.
        let products = crate::device::cpu_bfloat16();
        if products.is_some() {
            // A draft's block, and more than one of them.
            for count in [5, 8, 20, 50] {
                assert!(alone.equal(&by(count)), "{count} rows, {products:?}");
            }
        }
        if products == Some("AVX-512") {
            assert!(alone.equal(&by(200)));
        }
    }
}
