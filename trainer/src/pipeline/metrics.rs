//! Loss and accuracies, summed on the device and read back only when they are reported.

use super::skips::Skipped;
use super::step::Update;
use crate::drafter::Slots;
use crate::loss::Loss;
use std::time::{Duration, Instant};
use tch::{Device, Kind, Tensor};

/// Sums since the last reading.
#[derive(Debug)]
pub(super) struct Metrics {
    block: usize,
    began: Instant,
    tokens: u64,
    supervised: u64,
    steps: Vec<Step>,
}

/// One step's figures, still on the device.
#[derive(Debug)]
struct Step {
    /// Its number, from 1.
    number: u64,
    batches: Vec<Batch>,
    update: Update,
}

/// What a batch did.
#[derive(Debug)]
pub(super) struct Batch {
    /// Double, `[2 + 2B]`: numerator, gained tokens, hits and cross-entropies of each slot; on the device.
    sums: Tensor,
    denominator: f64,
    /// Slots of each kind, and blocks with any.
    totals: Vec<u64>,
    blocks: u64,
    samples: Vec<usize>,
    tokens: u64,
    supervised: u64,
}

impl Batch {
    /// Of a loss over `slots` of blocks of `block` tokens, drawn from `samples`.
    pub(super) fn new(loss: &Loss, slots: &Slots, block: usize, samples: &[usize]) -> Self {
        let _guard = tch::no_grad_guard();
        let flat = |t: &Tensor| t.detach().to_kind(Kind::Double).view([-1]);
        let figures = &loss.figures;
        let parts = [&loss.numerator, &figures.accepted, &figures.hits, &figures.entropy].map(flat);
        Self {
            sums: Tensor::cat(&parts, 0),
            denominator: loss.denominator,
            totals: slots.totals(block),
            blocks: slots.blocks(block as i64),
            samples: samples.to_vec(),
            tokens: 0,
            supervised: 0,
        }
    }

    /// With the tokens of its texts, and how many of them are supervised.
    pub(super) fn counted(self, tokens: u64, supervised: u64) -> Self {
        Self { tokens, supervised, ..self }
    }
}

/// Figures of some steps.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Reading {
    pub(super) loss: f64,
    pub(super) accuracy: f64,
    /// Accuracy of slots 1..B.
    pub(super) slots: Vec<f64>,
    /// Cross-entropy of slots 1..B, without decay.
    pub(super) slot_losses: Vec<f64>,
    /// Mean over the blocks of their leading right slots, and one more.
    pub(super) block_acceptance: f64,
    /// Mean gradient norm before clipping.
    pub(super) gradient_norm: f64,
    pub(super) tokens_per_s: f64,
    pub(super) supervised_per_s: f64,
}

impl Metrics {
    pub(super) fn new(block: usize) -> Self {
        Self { block, began: Instant::now(), tokens: 0, supervised: 0, steps: Vec::new() }
    }

    /// For so long nothing was learnt: rates leave it out.
    pub(super) fn paused(&mut self, time: Duration) {
        self.began += time;
    }

    /// Takes note of step number `number` (from 1), made of `batches`.
    pub(super) fn add(&mut self, number: u64, batches: Vec<Batch>, update: Update) {
        self.tokens += batches.iter().map(|batch| batch.tokens).sum::<u64>();
        self.supervised += batches.iter().map(|batch| batch.supervised).sum::<u64>();
        self.steps.push(Step { number, batches, update });
    }

    /// Reads everything back, in one go (this waits for the device), and starts anew.
    pub(super) fn sums(&mut self) -> Sums {
        let steps = std::mem::take(&mut self.steps);
        let width = 2 + 2 * self.block;
        let read = read_back(&steps, width);
        let mut numbers = read.chunks(width);
        let mut values = vec![0.0; FIRST_SLOT + 3 * self.block];
        let mut skipped = Vec::new();
        for step in &steps {
            let (norm, finite) = numbers.next().map_or((0.0, false), |n| (n[0], n[1] != 0.0));
            let batches: Vec<&[f64]> = step.batches.iter().filter_map(|_| numbers.next()).collect();
            skipped.push((!finite).then(|| step.skipped(&batches, norm)));
            if finite {
                values[2] += norm;
                values[3] += 1.0;
                step.batches.iter().zip(batches).for_each(|(batch, sums)| batch.add_to(&mut values, sums, self.block));
            }
        }
        (values[4], values[5]) = (self.tokens as f64, self.supervised as f64);
        let seconds = self.began.elapsed().as_secs_f64().max(1e-9);
        *self = Self::new(self.block);
        Sums { values, seconds, steps: skipped }
    }
}

/// Numbers of each step, and then of each of its batches, in rows of `width`. The device is asked once: on a GPU each
/// question would wait for it.
fn read_back(steps: &[Step], width: usize) -> Vec<f64> {
    let _guard = tch::no_grad_guard();
    let mut rows = Vec::new();
    for step in steps {
        let head = [&step.update.norm, &step.update.finite].map(|t| t.to_kind(Kind::Double).view([1]));
        rows.push(Tensor::cat(&head, 0).constant_pad_nd([0, width as i64 - 2]));
        rows.extend(step.batches.iter().map(|batch| batch.sums.shallow_clone()));
    }
    if rows.is_empty() {
        return Vec::new();
    }
    Vec::try_from(Tensor::cat(&rows, 0).to_device(Device::Cpu)).unwrap_or_default()
}

impl Batch {
    fn add_to(&self, values: &mut [f64], sums: &[f64], block: usize) {
        values[0] += sums[0];
        values[1] += self.denominator;
        values[6] += sums[1];
        values[7] += self.blocks as f64;
        for slot in 0..block {
            let at = FIRST_SLOT + 3 * slot;
            values[at] += sums[2 + slot];
            values[at + 1] += self.totals[slot] as f64;
            values[at + 2] += sums[2 + block + slot];
        }
    }
}

impl Step {
    fn skipped(&self, batches: &[&[f64]], norm: f64) -> Skipped {
        let numerator = batches.iter().map(|sums| sums[0]).sum();
        let denominator = self.batches.iter().map(|batch| batch.denominator).sum();
        let samples = self.batches.iter().flat_map(|batch| batch.samples.iter().copied()).collect();
        Skipped { step: self.number, loss: ratio(numerator, denominator), norm, samples }
    }
}

/// Where the slots' sums begin: right, all, cross-entropy of each.
const FIRST_SLOT: usize = 8;

/// The figures of some steps as plain sums, which drafters may add up: numerators, denominators, norms, updates, tokens,
/// supervised tokens, gained tokens, blocks, then those of each slot.
#[derive(Debug)]
pub(super) struct Sums {
    pub(super) values: Vec<f64>,
    seconds: f64,
    /// One for each step: `None`, or why it does not count. The sums are without it.
    pub(super) steps: Vec<Option<Skipped>>,
}

impl Sums {
    pub(super) fn reading(&self) -> Reading {
        let [numerator, denominator, norms, updates, tokens, supervised, gained, blocks] =
            std::array::from_fn(|i| self.values[i]);
        let slots: Vec<_> = self.values[FIRST_SLOT..].chunks_exact(3).map(|slot| (slot[0], slot[1], slot[2])).collect();
        let (right, all) = slots.iter().fold((0.0, 0.0), |(r, a), (right, all, _)| (r + right, a + all));
        Reading {
            loss: ratio(numerator, denominator),
            accuracy: ratio(right, all),
            slots: slots[1..].iter().map(|&(right, all, _)| ratio(right, all)).collect(),
            slot_losses: slots[1..].iter().map(|&(_, all, entropy)| ratio(entropy, all)).collect(),
            block_acceptance: ratio(gained, blocks),
            gradient_norm: ratio(norms, updates),
            tokens_per_s: tokens / self.seconds,
            supervised_per_s: supervised / self.seconds,
        }
    }
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A step on two samples: blocks of four, slots 1 and 3 of the first, 1 to 3 of the second.
    fn step(number: u64, numerator: f64, (norm, finite): (f64, bool)) -> Step {
        let slots = [0.0, 2.0, 0.0, 2.0, 0.0, 1.0, 3.0, 2.0];
        let sums = Tensor::cat(&[Tensor::from_slice(&[numerator, 5.0]), Tensor::from_slice(&slots)], 0);
        let samples = vec![2 * number as usize, 2 * number as usize + 1];
        let batch =
            Batch { sums, denominator: 2.0, totals: vec![0, 2, 1, 2], blocks: 2, samples, tokens: 10, supervised: 5 };
        Step { number, batches: vec![batch], update: Update { norm: Tensor::from(norm), finite: Tensor::from(finite) } }
    }

    #[test]
    fn a_step_that_is_no_number_is_told_and_left_out_of_the_sums() {
        let mut metrics = Metrics::new(4);
        for Step { number, batches, update } in
            [step(1, 3.0, (1.0, true)), step(2, f64::NAN, (2.0, false)), step(3, 1.0, (f64::INFINITY, false))]
        {
            metrics.add(number, batches, update);
        }
        let sums = metrics.sums();
        let reading = sums.reading();
        assert_eq!((reading.loss, reading.gradient_norm, reading.accuracy), (1.5, 1.0, 0.8));
        assert_eq!((reading.slots, reading.slot_losses), (vec![1.0, 0.0, 1.0], vec![0.5, 3.0, 1.0]));
        assert_eq!(reading.block_acceptance, 2.5);
        let told: Vec<_> = sums.steps.iter().flatten().map(|s| (s.step, s.samples.clone())).collect();
        assert_eq!(told, [(2, vec![4, 5]), (3, vec![6, 7])]);
        assert!(sums.steps[0].is_none() && metrics.sums().steps.is_empty());
    }
}
