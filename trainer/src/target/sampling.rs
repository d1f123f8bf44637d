//! Tokens drawn from the target's distribution.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tch::{Kind, Tensor};

/// How tokens are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// The logits are divided by it before the softmax; above 0.
    pub temperature: f64,
    /// Seed of every draw.
    pub seed: u64,
}

impl Sampling {
    /// The draws of the answer to `prompt`: the same whatever else is answered beside it, before it or after it, so that
    /// an interrupted work can be taken up again.
    pub(super) fn chance(&self, prompt: &[i64]) -> StdRng {
        // FNV-1a (Fowler, Noll, Vo) over the prompt's ids.
        let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let hash = prompt.iter().flat_map(|id| id.to_le_bytes()).fold(0xcbf2_9ce4_8422_2325, step);
        StdRng::seed_from_u64(hash ^ self.seed)
    }
}

/// Draws a token for each row of logits [b, V]; returns ids `[b]`. Row i takes one number from `chances[i]`.
pub(super) fn draw(logits: &Tensor, temperature: f64, chances: &mut [StdRng]) -> Tensor {
    let numbers: Vec<f64> = chances.iter_mut().map(|chance| chance.random()).collect();
    by_numbers(logits, temperature, &numbers)
}

fn by_numbers(logits: &Tensor, temperature: f64, numbers: &[f64]) -> Tensor {
    by_weight(&(logits.to_kind(Kind::Float) / temperature).softmax(-1, Kind::Float), numbers)
}

/// Inverts the distribution function of each row of weights [b, V], which need not add up to one: the first token whose
/// cumulative weight lies above the row's number in [0, 1); ids `[b]`. One of weight zero never is.
pub(crate) fn by_weight(weights: &Tensor, numbers: &[f64]) -> Tensor {
    // Summed in f64: over 150,000 tokens f32 would lose the tail.
    let sums = weights.cumsum(-1, Kind::Double);
    let last = sums.size()[1] - 1;
    let numbers = Tensor::from_slice(numbers).to_device(weights.device()).unsqueeze(1) * sums.narrow(1, last, 1);
    sums.le_tensor(&numbers).sum_dim_intlist([-1i64].as_slice(), false, Kind::Int64).clamp_max(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_come_as_often_as_their_probability_says() {
        let logits = Tensor::from_slice(&[1.0f32, f32::NEG_INFINITY, -0.5, 2.0, 0.0]);
        for temperature in [0.3, 1.0, 2.5] {
            let rows = 4_000;
            let numbers: Vec<f64> = (0..rows).map(|i| (f64::from(i) + 0.5) / f64::from(rows)).collect();
            let drawn = by_numbers(&logits.expand([i64::from(rows), 5], false), temperature, &numbers);
            let counts = Vec::<f64>::try_from(drawn.bincount::<Tensor>(None, 5).to_kind(Kind::Double)).unwrap();
            let expected = (&logits / temperature).softmax(-1, Kind::Double) * f64::from(rows);
            for (count, expected) in counts.iter().zip(Vec::<f64>::try_from(expected).unwrap()) {
                // Evenly spaced numbers meet each stretch of the distribution function to within one.
                assert!((count - expected).abs() <= 1.0 + 1e-3, "{temperature}: {count} for {expected}");
            }
            assert_eq!(counts[1], 0.0);
        }
    }

    #[test]
    fn an_answers_draws_depend_on_its_prompt_and_the_seed_alone() {
        let sampling = |seed| Sampling { temperature: 1.0, seed };
        let first = |seed, prompt: &[i64]| sampling(seed).chance(prompt).random::<u64>();
        assert_eq!(first(0, &[1, 2]), first(0, &[1, 2]));
        assert_ne!(first(0, &[1, 2]), first(0, &[2, 1]));
        assert_ne!(first(0, &[1, 2]), first(1, &[1, 2]));
    }
}
