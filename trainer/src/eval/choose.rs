//! Which token follows: the likeliest, or one drawn; and which drafted ones stand.
//!
//! Drawn tokens are the target's own in distribution (speculative sampling): a drafted token x stands with probability
//! min(1, p(x)/q(x)); the first that does not is replaced by one drawn from max(0, p - q).

use crate::model::attention::likeliest;
use crate::target::by_weight;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tch::{Device, Kind, Tensor};

/// Chooses tokens.
#[derive(Debug)]
pub(super) struct Chooser {
    temperature: f64,
    rng: StdRng,
}

/// Drafted tokens, and what they were drawn from.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub(super) ids: Vec<i64>,
    /// [rows, V] Double; `None`: they are the likeliest.
    from: Option<Tensor>,
}

/// What a check leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// Leading drafted tokens that stand.
    pub(super) accepted: usize,
    /// The target's own token behind them.
    pub(super) next: i64,
}

impl Chooser {
    /// Temperature 0: always the likeliest.
    pub(super) fn new(temperature: f64, seed: u64) -> Self {
        Self { temperature, rng: StdRng::seed_from_u64(seed) }
    }

    /// A token for every row of [1, rows, V].
    pub(super) fn choose(&mut self, logits: &Tensor) -> Draft {
        if self.temperature == 0.0 {
            return Draft { ids: greedy(logits), from: None };
        }
        let from = self.probabilities(logits);
        Draft { ids: self.draw(&from), from: Some(from) }
    }

    /// Which of `draft` stand before the target's `logits` [1, 1 + drafted, V], and what follows.
    pub(super) fn verify(&mut self, draft: &Draft, logits: &Tensor) -> Verdict {
        if self.temperature == 0.0 {
            let truth = greedy(logits);
            let accepted = draft.ids.iter().zip(&truth).take_while(|(drafted, own)| drafted == own).count();
            return Verdict { accepted, next: truth[accepted] };
        }
        let own = self.probabilities(logits);
        let stand = |(own, drafted): &(f64, f64)| self.rng.random::<f64>() * drafted < *own;
        let odds = draft.from.as_ref().map(|from| (of(&own, &draft.ids), of(from, &draft.ids))).unwrap_or_default();
        let accepted = odds.0.into_iter().zip(odds.1).take_while(stand).count();
        let row = own.narrow(0, accepted as i64, 1);
        let rest = match &draft.from {
            Some(from) if accepted < draft.ids.len() => (&row - from.narrow(0, accepted as i64, 1)).clamp_min(0.0),
            _ => row.shallow_clone(),
        };
        // Where rounding leaves nothing, the two are the same.
        let rest = if rest.sum(Kind::Double).double_value(&[]) > 0.0 { rest } else { row };
        Verdict { accepted, next: self.draw(&rest).first().copied().unwrap_or(0) }
    }

    /// [1, rows, V] -> [rows, V] Double
    fn probabilities(&self, logits: &Tensor) -> Tensor {
        (logits.squeeze_dim(0).to_kind(Kind::Double) / self.temperature).softmax(-1, Kind::Double)
    }

    /// One index a row, by weights [rows, V] that need not add up to one.
    fn draw(&mut self, weights: &Tensor) -> Vec<i64> {
        let numbers: Vec<f64> = (0..weights.size()[0]).map(|_| self.rng.random()).collect();
        integers(&by_weight(weights, &numbers))
    }
}

/// The likeliest token of every row of [1, rows, V]; of equals the lowest id.
fn greedy(logits: &Tensor) -> Vec<i64> {
    integers(&likeliest(logits))
}

fn integers(t: &Tensor) -> Vec<i64> {
    Vec::try_from(t.view([-1]).to_device(Device::Cpu)).unwrap_or_default()
}

/// Row i's value at `ids[i]`.
fn of(rows: &Tensor, ids: &[i64]) -> Vec<f64> {
    let index = Tensor::from_slice(ids).to_device(rows.device()).unsqueeze(1);
    let picked = rows.narrow(0, 0, ids.len() as i64).gather(1, &index, false);
    Vec::try_from(picked.view([-1]).to_device(Device::Cpu)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUNDS: usize = 4_000;

    fn logits(rows: &[[f64; 4]]) -> Tensor {
        let flat: Vec<f64> = rows.iter().flatten().map(|p| p.ln()).collect();
        Tensor::from_slice(&flat).view([1, rows.len() as i64, 4])
    }

    /// Pearson's statistic of counts against probabilities.
    fn chi_square(counts: [usize; 4], p: [f64; 4]) -> f64 {
        let all = counts.iter().sum::<usize>() as f64;
        counts.iter().zip(p).map(|(&n, p)| (n as f64 - all * p).powi(2) / (all * p)).sum()
    }

    /// Three degrees of freedom: beyond this lies one in a million.
    const BEYOND: f64 = 30.7;

    #[test]
    fn tokens_are_the_targets_own_in_distribution() {
        let (p, q) =
            ([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.25; 4]], [[0.4, 0.3, 0.2, 0.1], [0.1, 0.1, 0.1, 0.7]]);
        let (own, drafter) = (logits(&p), logits(&q));
        let mut chooser = Chooser::new(1.0, 5);
        let (mut first, mut second, mut third, mut wrong) = ([0; 4], [0; 4], [0; 4], [0; 4]);
        for _ in 0..ROUNDS {
            let draft = chooser.choose(&drafter);
            let Verdict { accepted, next } = chooser.verify(&draft, &own);
            let emitted: Vec<_> = draft.ids[..accepted].iter().copied().chain([next]).collect();
            for (counts, id) in [&mut first, &mut second, &mut third].into_iter().zip(&emitted) {
                counts[*id as usize] += 1;
            }
            wrong[draft.ids[0] as usize] += 1;
        }
        assert!(first.iter().sum::<usize>() == ROUNDS && third.iter().sum::<usize>() > 200);
        for (counts, p) in [first, second, third].into_iter().zip(p) {
            assert!(chi_square(counts, p) < BEYOND, "{counts:?} is not {p:?}");
        }
        assert!(chi_square(wrong, p[0]) > BEYOND, "drafted tokens alone are told from the target's");
    }

    #[test]
    fn a_draft_like_the_target_always_stands() {
        let p = logits(&[[0.1, 0.2, 0.3, 0.4]; 3]);
        let mut chooser = Chooser::new(1.0, 1);
        for _ in 0..200 {
            let draft = chooser.choose(&p.narrow(1, 0, 2));
            assert_eq!(chooser.verify(&draft, &p).accepted, 2);
        }
    }

    #[test]
    fn without_temperature_the_likeliest_is_chosen() {
        let own = logits(&[[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.1, 0.7, 0.1, 0.1]]);
        let mut chooser = Chooser::new(0.0, 0);
        let draft = chooser.choose(&logits(&[[0.1, 0.2, 0.3, 0.4], [0.1, 0.7, 0.1, 0.1]]));
        assert_eq!(draft.ids, [3, 1]);
        assert_eq!(chooser.verify(&draft, &own), Verdict { accepted: 1, next: 0 });
        // A low temperature is nearly that.
        let mut cold = Chooser::new(0.01, 0);
        assert_eq!(cold.choose(&own).ids, [3, 0, 1]);
    }
}
