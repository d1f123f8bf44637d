//! Gradients of batches, and what becomes of them between drafters.

use super::super::overlap::{Overlap, gradient};
use super::Learner;
use crate::loss::Loss;
use crate::pipeline::HiddenStates;
use crate::pipeline::metrics::Batch;
use crate::pipeline::step::Share;
use dflash_profiler::span;
use dflash_torch::Handoff;
use tch::{Kind, Tensor};

impl Learner<'_> {
    /// Every weight's gradient; zeros where a batch had none.
    pub(super) fn gradients(&self) -> Vec<Tensor> {
        self.step.drafter.parameters().iter().map(|(_, weight)| gradient(weight)).collect()
    }

    /// Gradients of a batch; `told` gets its loss before they are made.
    pub(super) fn pass(&mut self, states: &HiddenStates<Handoff>, told: &dyn Fn(&Loss)) -> Result<(), String> {
        let rows = self.rows(&states.samples);
        self.weight = (0.0, None);
        if rows.is_empty() {
            return Ok(());
        }
        let share = Share { step: states.step, first_row: states.first_row };
        let taps = {
            let device = self.step.device();
            let _sync = states.taps.holds_up(device).then(|| span!("sync.copy"));
            states.taps.lend(device).map_err(|error| error.to_string())?
        };
        let (loss, slots) = self.step.backward_telling(&taps, &rows, share, told);
        let _span = span!("drafter.log");
        self.weight = (loss.denominator, loss.divisor.as_ref().map(Tensor::shallow_clone));
        let tokens = rows.iter().map(|row| row.ids.len() as u64).sum();
        let supervised = rows.iter().map(|row| row.loss_mask.iter().filter(|&&m| m).count() as u64).sum();
        let block = self.step.drafter.config.block_size as usize;
        self.pending.push(Batch::new(&loss, &slots, block, &states.samples).counted(tokens, supervised));
        drop((loss, slots, taps));
        Ok(())
    }

    /// The gradients of a batch, of all drafters together. A step may have several batches: their means add up until it is
    /// made.
    pub(super) fn keep(&mut self, gradients: Vec<Tensor>) {
        let _guard = tch::no_grad_guard();
        self.reduced = if self.reduced.is_empty() {
            gradients
        } else {
            self.reduced.iter().zip(&gradients).map(|(sum, gradient)| sum + gradient).collect()
        };
        self.step.drafter.parameters().iter().for_each(|(_, weight)| weight.shallow_clone().zero_grad());
    }

    /// What adds gradients up meanwhile; made with the first batch, on the streams of the lane.
    pub(super) fn overlap(&mut self) -> Result<Overlap, String> {
        let weights = || self.step.drafter.parameters().iter().map(|(_, weight)| weight.shallow_clone()).collect();
        self.overlap.take().map_or_else(|| Overlap::new(weights(), &self.devices), Ok)
    }
}

/// Gives a weight a gradient, also one that had none.
pub(super) fn set_gradient(weight: &Tensor, gradient: &Tensor) {
    let mut own = weight.grad();
    if own.defined() {
        own.copy_(gradient);
        return;
    }
    // tch sets no gradient; a backward pass of their product does.
    tch::with_grad(|| (weight * gradient.to_kind(weight.kind())).sum(Kind::Float).backward());
}
