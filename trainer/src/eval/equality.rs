//! Is the output really the target's own? Every emitted token against the target under teacher forcing.

use crate::model::attention::likeliest;
use crate::target::Target;
use tch::{Device, IndexOp, Kind, Tensor};

/// How far an answer agrees with the target's own greedy choice, token by token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agreement {
    /// Every token is the target's likeliest.
    Equal,
    /// Some token's logit lies within one bfloat16 step below the likeliest's: a tie that rounding broke.
    NearTie,
    /// Some token is neither.
    Wrong,
}

/// An answer's agreement, and the largest distance of one of its tokens below the likeliest, in bfloat16 steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// The worst of its tokens'.
    pub agreement: Agreement,
    /// 0 where every token is the likeliest.
    pub steps: f64,
}

/// Reads prompt and answer in one pass and judges each token of the answer (not empty).
///
/// In bfloat16 one pass over the whole text rounds otherwise than passes over blocks, so near ties may fall the other
/// way; in float32 anything but `Equal` is an error of the decoding loop.
#[must_use]
pub fn judge(target: &Target, prompt: &[i64], answer: &[i64]) -> Judgement {
    let rows = rows(target, prompt, answer);
    let agreement = rows.iter().map(|row| row.agreement(target.kind())).max().unwrap_or(Agreement::Equal);
    let steps = rows.iter().filter(|row| !row.likeliest).map(Row::steps).fold(0.0, f64::max);
    Judgement { agreement, steps }
}

/// What the target says about one token of an answer.
#[derive(Clone, Copy, Debug)]
struct Row {
    /// The token is the likeliest; of equals, the one with the lowest id.
    likeliest: bool,
    /// The largest logit.
    best: f64,
    /// How far the token's own logit lies below it.
    gap: f64,
}

impl Row {
    fn agreement(&self, kind: Kind) -> Agreement {
        if self.likeliest {
            Agreement::Equal
        } else if kind == Kind::BFloat16 && self.steps() <= 1.0 {
            Agreement::NearTie
        } else {
            Agreement::Wrong
        }
    }

    fn steps(&self) -> f64 {
        self.gap / bf16_step(self.best)
    }
}

fn rows(target: &Target, prompt: &[i64], answer: &[i64]) -> Vec<Row> {
    let _guard = tch::no_grad_guard();
    let text: Vec<i64> = prompt.iter().chain(answer).copied().collect();
    let ids = Tensor::from_slice(&text).to_device(target.device()).unsqueeze(0);
    let hidden = target.features(&ids, &[], true).last;
    let first = prompt.len() as i64 - 1;
    let logits = target.logits(&hidden.i((0, first..first + answer.len() as i64))).to_kind(Kind::Double);
    let chosen = Tensor::from_slice(answer).to_device(target.device());
    let own = logits.gather(1, &chosen.unsqueeze(1), false).squeeze_dim(1);
    let best = logits.amax(-1, false);
    let likeliest = likeliest(&logits).eq_tensor(&chosen);
    let numbers = |t: &Tensor| Vec::<f64>::try_from(t.to_device(Device::Cpu)).unwrap_or_default();
    let flags = Vec::<bool>::try_from(likeliest.to_device(Device::Cpu)).unwrap_or_default();
    let (best, own) = (numbers(&best), numbers(&own));
    flags
        .into_iter()
        .zip(best)
        .zip(own)
        .map(|((likeliest, best), own)| Row { likeliest, best, gap: best - own })
        .collect()
}

/// Distance between neighbouring bfloat16 numbers at `value`: eight bits of significand.
fn bf16_step(value: f64) -> f64 {
    2f64.powi(value.abs().max(f64::MIN_POSITIVE).log2().floor() as i32 - 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bf16_step_is_the_distance_to_the_next_number() {
        for value in [1.0f32, 1.99, 17.25, 31.9, 0.3] {
            let here = half::bf16::from_f32(value);
            let next = half::bf16::from_bits(here.to_bits() + 1);
            assert_eq!(bf16_step(f64::from(here.to_f32())), f64::from(next.to_f32() - here.to_f32()));
        }
    }

    #[test]
    fn only_bf16_has_near_ties() {
        let row = |gap| Row { likeliest: false, best: 20.0, gap };
        assert_eq!(row(0.125).agreement(Kind::BFloat16), Agreement::NearTie);
        assert_eq!(row(0.25).agreement(Kind::BFloat16), Agreement::Wrong);
        assert_eq!(row(0.125).agreement(Kind::Float), Agreement::Wrong);
        assert_eq!(Row { likeliest: true, ..row(0.0) }.agreement(Kind::Float), Agreement::Equal);
    }
}
