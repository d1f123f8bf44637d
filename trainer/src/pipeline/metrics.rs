//! Loss and accuracies, summed on the device and read back only when they are reported.

use super::skips::Skipped;
use crate::drafter::anchors::Slots;
use crate::loss::Loss;
use std::time::Instant;
use tch::{Device, Kind, Tensor};

/// Sums since the last reading.
#[derive(Debug)]
pub(super) struct Metrics {
    block: usize,
    began: Instant,
    tokens: u64,
    supervised: u64,
    steps: Vec<Pending>,
}

/// One step's figures, still on the device.
#[derive(Debug)]
struct Pending {
    numerator: Tensor,
    denominator: f64,
    correct: Tensor,
    slots: Slots,
    norm: Tensor,
    /// Number of the step, from 1, and the samples of its batch.
    step: u64,
    samples: Vec<usize>,
}

/// Tokens of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counts {
    pub(super) tokens: u64,
    pub(super) supervised: u64,
}

/// Figures of some steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reading {
    pub(super) loss: f64,
    pub(super) accuracy: f64,
    /// Accuracy of slots 1..B.
    pub(super) slots: Vec<f64>,
    /// Mean gradient norm before clipping.
    pub(super) gradient_norm: f64,
    pub(super) tokens_per_s: f64,
    pub(super) supervised_per_s: f64,
    /// Mean over the blocks of their leading right slots, and one more.
    pub(super) block_acceptance: f64,
    /// Cross-entropies of slots 1..B; empty: not known.
    pub(super) slot_losses: Vec<f64>,
    /// One for each step: `None`, or why it does not count. The sums above are without it.
    pub(super) steps: Vec<Option<Skipped>>,
}

impl Metrics {
    pub(super) fn new(block: usize) -> Self {
        Self { block, began: Instant::now(), tokens: 0, supervised: 0, steps: Vec::new() }
    }

    /// Takes note of step number `step` (from 1) on `samples`.
    pub(super) fn add(
        &mut self,
        (loss, slots, norm): (&Loss, Slots, Tensor),
        step: u64,
        samples: &[usize],
        counts: Counts,
    ) {
        let Counts { tokens, supervised } = counts;
        self.tokens += tokens;
        self.supervised += supervised;
        let numerator = loss.numerator.detach();
        let correct = loss.correct.shallow_clone();
        let samples = samples.to_vec();
        self.steps.push(Pending { numerator, denominator: loss.denominator, correct, slots, norm, step, samples });
    }

    /// Reads everything back (this waits for the device) and starts anew.
    pub(super) fn read(&mut self) -> Reading {
        let seconds = self.began.elapsed().as_secs_f64().max(1e-9);
        let mut hits = vec![(0u64, 0u64); self.block];
        let (mut numerator, mut denominator, mut norms, mut counted) = (0.0, 0.0, 0.0, 0.0);
        let (mut accepted, mut steps) = (Accepted::default(), Vec::new());
        for step in &self.steps {
            let (loss, norm) = (number(&step.numerator), number(&step.norm));
            if !(loss.is_finite() && norm.is_finite()) {
                steps.push(Some(step.skipped(loss, norm)));
                continue;
            }
            steps.push(None);
            numerator += loss;
            denominator += step.denominator;
            norms += norm;
            counted += 1.0;
            let correct = Vec::<bool>::try_from(step.correct.to_device(Device::Cpu)).unwrap_or_default();
            accepted.add(&step.slots, &correct, self.block);
            for (&slot, hit) in step.slots.slot.iter().zip(correct) {
                let (right, all) = &mut hits[slot as usize];
                *right += u64::from(hit);
                *all += 1;
            }
        }
        let (right, all) = hits.iter().fold((0, 0), |(r, a), (right, all)| (r + right, a + all));
        let reading = Reading {
            loss: ratio(numerator, denominator),
            accuracy: ratio(right as f64, all as f64),
            slots: hits[1..].iter().map(|&(right, all)| ratio(right as f64, all as f64)).collect(),
            gradient_norm: ratio(norms, counted),
            tokens_per_s: self.tokens as f64 / seconds,
            supervised_per_s: self.supervised as f64 / seconds,
            block_acceptance: ratio(accepted.length as f64, accepted.blocks as f64),
            slot_losses: Vec::new(),
            steps,
        };
        *self = Self::new(self.block);
        reading
    }
}

impl Pending {
    fn skipped(&self, numerator: f64, norm: f64) -> Skipped {
        Skipped { step: self.step, loss: ratio(numerator, self.denominator), norm, samples: self.samples.clone() }
    }
}

impl Reading {
    /// Acceptance length that these accuracies would give if slots missed independently, without the target's own token.
    pub(super) fn simulated_acceptance(&self) -> f64 {
        let running = self.slots.iter().scan(1.0, |product, accuracy| {
            *product *= accuracy;
            Some(*product)
        });
        running.sum()
    }
}

/// What verifications would have gained: over the blocks with a supervised slot, leading right ones and one more.
/// Unsupervised slots neither count nor break the row.
#[derive(Debug, Default, PartialEq)]
struct Accepted {
    length: u64,
    blocks: u64,
}

impl Accepted {
    fn add(&mut self, slots: &Slots, correct: &[bool], block: usize) {
        let of_block = |index: &i64| index / block as i64;
        let (mut current, mut missed) = (None, false);
        for (index, &hit) in slots.index.iter().zip(correct) {
            if current != Some(of_block(index)) {
                (current, missed) = (Some(of_block(index)), false);
                self.blocks += 1;
                self.length += 1;
            }
            missed |= !hit;
            self.length += u64::from(!missed);
        }
    }
}

fn number(t: &Tensor) -> f64 {
    t.to_kind(Kind::Double).double_value(&[])
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(numerator: f32, correct: &[bool]) -> Loss {
        let numerator = Tensor::from(numerator);
        Loss { mean: numerator.shallow_clone(), numerator, denominator: 2.0, correct: Tensor::from_slice(correct) }
    }

    /// Two blocks of four: slots 1 and 3 of the first, 1 to 3 of the second.
    fn slots() -> Slots {
        Slots { index: vec![1, 3, 5, 6, 7], label: vec![0; 5], slot: vec![1, 3, 1, 2, 3] }
    }

    #[test]
    fn a_step_that_is_no_number_is_told_and_left_out_of_the_sums() {
        let mut metrics = Metrics::new(4);
        let counts = Counts { tokens: 10, supervised: 5 };
        let right = [true, true, true, false, true];
        metrics.add((&loss(3.0, &right), slots(), Tensor::from(1.0f32)), 1, &[4, 5], counts);
        metrics.add((&loss(f32::NAN, &[true; 5]), slots(), Tensor::from(2.0f32)), 2, &[6, 7], counts);
        metrics.add((&loss(1.0, &[true; 5]), slots(), Tensor::from(f32::INFINITY)), 3, &[8, 9], counts);
        let reading = metrics.read();
        assert_eq!((reading.loss, reading.gradient_norm, reading.accuracy), (1.5, 1.0, 0.8));
        assert_eq!(reading.slots, [1.0, 0.0, 1.0]);
        // The first block gains its two and one more, the second one and one more.
        assert_eq!((reading.block_acceptance, reading.simulated_acceptance()), (2.5, 1.0));
        let told: Vec<_> = reading.steps.iter().flatten().map(|s| (s.step, s.samples.clone())).collect();
        assert_eq!(told, [(2, vec![6, 7]), (3, vec![8, 9])]);
        assert!(reading.steps[0].is_none() && metrics.read().steps.is_empty());
    }
}
