//! Loss and accuracies, summed on the device and read back only when they are reported.

use crate::drafter::Slots;
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
    slot: Vec<i64>,
    norm: Option<Tensor>,
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
}

impl Metrics {
    pub(super) fn new(block: usize) -> Self {
        Self { block, began: Instant::now(), tokens: 0, supervised: 0, steps: Vec::new() }
    }

    pub(super) fn add(&mut self, loss: &Loss, slots: Slots, norm: Option<Tensor>, tokens: u64, supervised: u64) {
        self.tokens += tokens;
        self.supervised += supervised;
        let numerator = loss.numerator.detach();
        let correct = loss.correct.shallow_clone();
        self.steps.push(Pending { numerator, denominator: loss.denominator, correct, slot: slots.slot, norm });
    }

    /// Reads everything back (this waits for the device) and starts anew.
    pub(super) fn sums(&mut self) -> Sums {
        let mut hits = vec![(0u64, 0u64); self.block];
        let (mut numerator, mut denominator, mut norms, mut updates) = (0.0, 0.0, 0.0, 0);
        for step in &self.steps {
            numerator += number(&step.numerator);
            denominator += step.denominator;
            if let Some(norm) = &step.norm {
                norms += number(norm);
                updates += 1;
            }
            let correct = Vec::<bool>::try_from(step.correct.to_device(Device::Cpu)).unwrap_or_default();
            for (&slot, hit) in step.slot.iter().zip(correct) {
                let (right, all) = &mut hits[slot as usize];
                *right += u64::from(hit);
                *all += 1;
            }
        }
        let counts = [updates, self.tokens, self.supervised].map(|n| n as f64);
        let mut values = vec![numerator, denominator, norms];
        values.extend(counts);
        values.extend(hits.iter().flat_map(|&(right, all)| [right as f64, all as f64]));
        let seconds = self.began.elapsed().as_secs_f64().max(1e-9);
        *self = Self::new(self.block);
        Sums { values, seconds }
    }
}

/// The figures of some steps as plain sums, which drafters may add up: numerators, denominators, norms, updates, tokens,
/// supervised tokens, then right and all of each slot.
#[derive(Debug)]
pub(super) struct Sums {
    pub(super) values: Vec<f64>,
    seconds: f64,
}

impl Sums {
    pub(super) fn reading(&self) -> Reading {
        let [numerator, denominator, norms, updates, tokens, supervised] = std::array::from_fn(|i| self.values[i]);
        let hits: Vec<_> = self.values[6..].chunks_exact(2).map(|hit| (hit[0], hit[1])).collect();
        let (right, all) = hits.iter().fold((0.0, 0.0), |(r, a), (right, all)| (r + right, a + all));
        Reading {
            loss: ratio(numerator, denominator),
            accuracy: ratio(right, all),
            slots: hits[1..].iter().map(|&(right, all)| ratio(right, all)).collect(),
            gradient_norm: ratio(norms, updates),
            tokens_per_s: tokens / self.seconds,
            supervised_per_s: supervised / self.seconds,
        }
    }
}

fn number(t: &Tensor) -> f64 {
    t.to_kind(Kind::Double).double_value(&[])
}

fn ratio(part: f64, whole: f64) -> f64 {
    if whole == 0.0 { 0.0 } else { part / whole }
}
