//! Rotary positions, half-split (NeoX) rotation, as in Hugging Face's Llama and Qwen.

use super::attention::split_heads;
use super::kernels::sound;
use super::layers::RmsNorm;
use dflash_torch::fused;
use serde::Deserialize;
use tch::{Device, Kind, Tensor};

/// How the frequencies are stretched for longer contexts.
#[derive(Clone, Debug, PartialEq)]
pub enum RopeScaling {
    /// Not at all.
    Default,
    /// All frequencies divided by a factor.
    Linear {
        /// The divisor.
        factor: f64,
    },
    /// Llama 3.1's: low frequencies divided, high ones kept, a blend between.
    Llama3(Llama3),
}

/// Parameters of Llama 3.1's scaling.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Llama3 {
    /// Divisor of the low frequencies.
    pub factor: f64,
    /// Turns within the original context below which a frequency is low.
    pub low_freq_factor: f64,
    /// Turns within the original context above which a frequency is high.
    pub high_freq_factor: f64,
    /// The original context, tokens.
    pub original_max_position_embeddings: f64,
}

const MAX_POSITIONS: i64 = 32_768;

/// Tables of cosines and sines, [positions, head_dim] each.
#[derive(Debug)]
pub struct Rope {
    cos: Tensor,
    sin: Tensor,
}

impl Rope {
    /// The same tables once more, not copied.
    pub(crate) fn shared(&self) -> Self {
        Self { cos: self.cos.shallow_clone(), sin: self.sin.shallow_clone() }
    }

    /// Tables for positions 0..`positions` (32,768 at most: longer ones are not worth their memory here), computed in float64 and rounded once to `kind`.
    #[must_use]
    pub fn new(head_dim: i64, theta: f64, scaling: &RopeScaling, positions: i64, kind: Kind, device: Device) -> Self {
        let inverse: Vec<f64> =
            (0..head_dim / 2).map(|i| scaled(theta.powf(-2.0 * i as f64 / head_dim as f64), scaling)).collect();
        let inverse = Tensor::from_slice(&inverse);
        let angle = Tensor::arange(positions.min(MAX_POSITIONS), (Kind::Double, Device::Cpu)).outer(&inverse);
        let angle = Tensor::cat(&[&angle, &angle], -1);
        let place = |t: Tensor| t.to_kind(kind).to_device(device);
        Self { cos: place(angle.cos()), sin: place(angle.sin()) }
    }

    /// Rotates queries or keys x [b, heads, rows, d] at `positions` `[rows]` or [b, rows] (Int64).
    pub fn apply(&self, x: &Tensor, positions: &Tensor) -> Tensor {
        let shape = match positions.size()[..] {
            [rows] => vec![1, 1, rows, -1],
            [batch, rows] => vec![batch, 1, rows, -1],
            _ => unreachable!("positions are [rows] or [b, rows]"),
        };
        let pick = |table: &Tensor| table.index_select(0, &positions.flatten(0, -1)).view(&shape[..]);
        rotate(x, &pick(&self.cos), &pick(&self.sin))
    }

    /// Queries or keys as their projection left them, x [b, rows, heads · d]: normed a head (with a norm), and rotated at
    /// `positions` `[rows]` or [b, rows] -> [b, heads, rows, d].
    pub fn heads(&self, x: &Tensor, norm: Option<&RmsNorm>, positions: &Tensor) -> Tensor {
        let head_dim = self.cos.size()[1];
        if !(fused::runs_on(x) && fused::heads_take(head_dim)) {
            let split = split_heads(x, head_dim);
            return self.apply(&norm.map_or_else(|| split.shallow_clone(), |norm| norm.forward(&split)), positions);
        }
        let (batch, rows) = (x.size()[0], x.size()[1]);
        let positions = positions.expand([batch, rows], false).contiguous();
        let (weight, eps) = (norm.map(|n| &n.weight), norm.map_or(0.0, |n| n.eps));
        sound(fused::rope(x, weight, (&self.cos, &self.sin), &positions, eps)).transpose(1, 2)
    }

    /// How many positions the tables hold.
    #[must_use]
    pub fn positions(&self) -> i64 {
        self.cos.size()[0]
    }
}

fn rotate(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Tensor {
    let halves = x.chunk(2, -1);
    x * cos + Tensor::cat(&[&halves[1].neg(), &halves[0]], -1) * sin
}

fn scaled(inverse: f64, scaling: &RopeScaling) -> f64 {
    match scaling {
        RopeScaling::Default => inverse,
        RopeScaling::Linear { factor } => inverse / factor,
        RopeScaling::Llama3(s) => {
            let turns = s.original_max_position_embeddings * inverse / std::f64::consts::TAU;
            let blend = ((turns - s.low_freq_factor) / (s.high_freq_factor - s.low_freq_factor)).clamp(0.0, 1.0);
            blend * inverse + (1.0 - blend) * inverse / s.factor
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Angles of a position under a scaling, from the tables.
    fn angles(scaling: &RopeScaling, position: i64) -> Vec<f64> {
        let rope = Rope::new(8, 10_000.0, scaling, 64, Kind::Double, Device::Cpu);
        let (sin, cos) = (rope.sin.get(position), rope.cos.get(position));
        Vec::try_from(sin.atan2(&cos).narrow(0, 0, 4)).unwrap()
    }

    #[test]
    fn linear_scaling_is_a_slower_walk() {
        let slow = angles(&RopeScaling::Linear { factor: 4.0 }, 8);
        for (a, b) in slow.iter().zip(angles(&RopeScaling::Default, 2)) {
            assert!((a - b).abs() < 1e-12, "position 8 of a context stretched by 4 is position 2: {a} {b}");
        }
    }

    #[test]
    fn llama3_keeps_fast_frequencies_and_stretches_slow_ones() {
        let scaling = RopeScaling::Llama3(Llama3 {
            factor: 8.0,
            low_freq_factor: 1.0,
            high_freq_factor: 4.0,
            original_max_position_embeddings: 64.0,
        });
        let (got, plain) = (angles(&scaling, 3), angles(&RopeScaling::Default, 3));
        // 64 positions are 10 turns of the first frequency, 1.02 of the second, less than one of the others.
        assert!((got[0] - plain[0]).abs() < 1e-12, "kept");
        assert!((got[2] - plain[2] / 8.0).abs() < 1e-12 && (got[3] - plain[3] / 8.0).abs() < 1e-12, "stretched");
        assert!(got[1] < plain[1] && got[1] > plain[1] / 8.0, "between");
    }
}
