//! A drafter's work: steps, and what several drafters must agree on in them.

use super::Torch;
use crate::drafter::DFlashDrafter;
use crate::drafter::anchors::Row;
use crate::drafter::anchors::Slots;
use crate::loss::Loss;
use crate::pipeline::HiddenStates;
use crate::pipeline::checkpoint::Checkpoints;
use crate::pipeline::collective::{Collective, Ended};
use crate::pipeline::metrics::Metrics;
use crate::pipeline::run::Text;
use crate::pipeline::step::{DrafterStep, Share};
use crate::pipeline::work::{Figures, Learn};
use dflash_profiler::{IterationGuard, span};
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

/// Trains one drafter.
pub(in crate::pipeline) struct Learner<'a> {
    pub(in crate::pipeline) step: DrafterStep,
    pub(in crate::pipeline) samples: &'a [Text],
    pub(in crate::pipeline) metrics: Metrics,
    pub(in crate::pipeline) checkpoints: Arc<Checkpoints<'a>>,
    pub(in crate::pipeline) learning_rate: f64,
    pub(in crate::pipeline) pending: Option<Pending>,
}

/// A step between its two halves.
pub(in crate::pipeline) struct Pending {
    loss: Loss,
    slots: Slots,
    tokens: u64,
    supervised: u64,
}

impl<'a> Learner<'a> {
    fn rows(&self, samples: &[usize]) -> Vec<Row<'a>> {
        samples.iter().map(|&i| self.samples[i].row()).collect()
    }

    /// Every weight with its gradient; zeros where a batch had none.
    fn gradients(&self) -> Vec<(Tensor, Tensor)> {
        let gradient = |weight: &Tensor| Some(weight.grad()).filter(Tensor::defined);
        let parameters = self.step.drafter.parameters().iter();
        parameters.map(|(_, w)| (w.shallow_clone(), gradient(w).unwrap_or_else(|| w.zeros_like().detach()))).collect()
    }
}

impl Learn<Torch<'_>> for Learner<'_> {
    fn begin(&mut self) {
        self.step.watch_stream();
    }

    fn backward(&mut self, states: &HiddenStates<Tensor>) -> Result<(), String> {
        let rows = self.rows(&states.samples);
        let (loss, slots) = if rows.is_empty() {
            (self.step.nothing(), Slots::default())
        } else {
            self.step.backward(&states.taps, &rows, Share { step: states.step, first_row: states.first_row })
        };
        let tokens = rows.iter().map(|row| row.ids.len() as u64).sum();
        let supervised = rows.iter().map(|row| row.loss_mask.iter().filter(|&&m| m).count() as u64).sum();
        self.pending = Some(Pending { loss, slots, tokens, supervised });
        Ok(())
    }

    /// The mean over the drafters, weighted with the weights of their losses: the gradient of the loss over all their
    /// slots together.
    fn reduce(&mut self, group: &mut dyn Collective) -> Result<(), Ended> {
        let _guard = tch::no_grad_guard();
        let _span = span!("drafter.reduce", &self.step.drafter.stream);
        let weight = self.pending.as_ref().map_or(0.0, |pending| pending.loss.denominator);
        let (weights, mut gradients): (Vec<_>, Vec<_>) = self.gradients().into_iter().unzip();
        group.mean(&mut gradients, weight)?;
        for (weight, gradient) in weights.iter().zip(&gradients) {
            set_gradient(weight, gradient);
        }
        Ok(())
    }

    fn update(&mut self, step: usize) {
        let norm = self.step.update(step);
        if let Some(Pending { loss, slots, tokens, supervised }) = self.pending.take() {
            self.metrics.add(&loss, slots, norm, tokens, supervised);
        }
    }

    fn figures(&mut self, group: &mut dyn Collective) -> Result<Figures, Ended> {
        let mut sums = self.metrics.sums();
        group.sum_numbers(&mut sums.values)?;
        let reading = sums.reading();
        Ok(Figures {
            loss: Some(reading.loss),
            accuracy: Some(reading.accuracy),
            slots: reading.slots,
            gradient_norm: Some(reading.gradient_norm),
            tokens_per_s: reading.tokens_per_s,
            supervised_per_s: reading.supervised_per_s,
        })
    }

    fn rate(&self, step: usize) -> Option<f64> {
        Some(self.learning_rate * self.step.rate_factor(step))
    }

    fn asked(&mut self, pass: &IterationGuard, step: usize) {
        self.checkpoints.write_if_asked(pass, &self.step.drafter, step);
    }
}

/// Gives a weight a gradient, also one that had none.
fn set_gradient(weight: &Tensor, gradient: &Tensor) {
    let mut own = weight.grad();
    if own.defined() {
        own.copy_(gradient);
        return;
    }
    // tch sets no gradient; a backward pass of their product does.
    tch::with_grad(|| (weight * gradient.to_kind(weight.kind())).sum(Kind::Float).backward());
}

/// The drafter's weights, copied to a device.
pub(in crate::pipeline) fn replica(drafter: &DFlashDrafter, device: Device) -> DFlashDrafter {
    let _guard = tch::no_grad_guard();
    let mut weights = drafter.parameters().iter();
    let kind = drafter.parameters().first().map_or(Kind::Float, |(_, weight)| weight.kind());
    let built = DFlashDrafter::build(&drafter.config, kind, device, |_, _| {
        // In the same order, as `build` promises.
        let weight = weights.next().map_or_else(Tensor::new, |(_, weight)| weight.detach().copy());
        Ok::<_, std::convert::Infallible>(weight)
    });
    match built {
        Ok(replica) => replica,
        Err(never) => match never {},
    }
}
