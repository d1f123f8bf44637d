//! A drafter's work: steps, and what several drafters must agree on in them.

mod gradients;

use super::Torch;
use super::overlap::Overlap;
use super::rehearsal::{Largest, set_by};
use crate::drafter::Row;
use crate::eval::RunEvaluation;
use crate::pipeline::HiddenStates;
use crate::pipeline::checkpoint::Checkpoints;
use crate::pipeline::collective::{Collective, Ended};
use crate::pipeline::held_out::Examiner;
use crate::pipeline::metrics::{Batch, Metrics};
use crate::pipeline::parts::Text;
use crate::pipeline::step::DrafterStep;
use crate::pipeline::streams::Streams;
use crate::pipeline::work::{Figures, Learn};
use dflash_profiler::{IterationGuard, span};
use dflash_torch::Handoff;
use gradients::set_gradient;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tch::{Device, Kind, Tensor};

/// Numbers on the device that may wait to be read: some ten a step, 512 bytes each.
const FIGURES: usize = 20_000;

/// Trains one drafter.
pub(in crate::pipeline) struct Learner<'a> {
    pub(in crate::pipeline) step: DrafterStep,
    /// All drafters' devices: this one's own, and where the others' gradients come from.
    devices: Vec<Device>,
    samples: &'a [Text],
    metrics: Metrics,
    checkpoints: Arc<Checkpoints<'a>>,
    learning_rate: f64,
    /// Batches of the step that is under way.
    pending: Vec<Batch>,
    /// Weight of the last batch's loss among the drafters'; on the device, where only that knows it.
    weight: (f64, Option<Tensor>),
    /// Gradients of the step that is under way, of all drafters together; none with one drafter.
    reduced: Vec<Tensor>,
    /// Gradients are added up while the backward pass makes others, by this.
    overlaps: bool,
    overlap: Option<Overlap>,
    /// The batch that needs most memory, and the numbers that a token of its hidden states has.
    largest: (Largest, i64),
    /// What evaluates it, if it is.
    examiner: Option<Examiner>,
    /// The last evaluation, and after how many steps it was.
    evaluated: Option<(usize, RunEvaluation)>,
}

impl<'a> Learner<'a> {
    pub(in crate::pipeline) fn new(
        (step, devices): (DrafterStep, &[Device]),
        samples: &'a [Text],
        checkpoints: Arc<Checkpoints<'a>>,
        learning_rate: f64,
        largest: (Largest, i64),
    ) -> Self {
        let metrics = Metrics::new(step.drafter.config.block_size as usize);
        let (pending, reduced) = (Vec::new(), Vec::new());
        let devices = devices.to_vec();
        Self {
            step,
            devices,
            samples,
            metrics,
            checkpoints,
            learning_rate,
            pending,
            weight: (0.0, None),
            reduced,
            overlaps: false,
            overlap: None,
            largest,
            examiner: None,
            evaluated: None,
        }
    }

    /// A step on hidden states that are zeros, and room for figures that wait to be read.
    fn rehearse(&mut self) {
        let (largest, width) = &self.largest;
        let ([rows, tokens], device) = (largest.size(self.samples), self.step.device());
        let taps = Tensor::zeros([rows, tokens, *width], (self.step.kind(), device));
        let samples = self.rows(&largest.samples);
        largest.clone().rehearse(device, || {
            set_by(1, &taps.size(), (taps.kind(), device));
            self.step.rehearse(&taps, &samples);
            set_by(FIGURES, &[1], (Kind::Float, device));
        });
    }

    /// Whether gradients of several drafters are added up while the backward pass makes others.
    pub(in crate::pipeline) fn overlapping(self, overlaps: bool) -> Self {
        Self { overlaps, ..self }
    }

    /// With what evaluates it.
    pub(in crate::pipeline) fn examined_by(self, examiner: Option<Examiner>) -> Self {
        Self { examiner, ..self }
    }

    /// What an evaluation after `steps` steps has found, if there was one.
    pub(in crate::pipeline) fn found(&self, steps: usize) -> Option<RunEvaluation> {
        self.evaluated.clone().filter(|(at, _)| *at == steps).map(|(_, found)| found)
    }

    fn rows(&self, samples: &[usize]) -> Vec<Row<'a>> {
        samples.iter().map(|&i| self.samples[i].row()).collect()
    }
}

impl Learn<Torch<'_>> for Learner<'_> {
    fn begin(&mut self) -> Result<Streams, String> {
        let streams = Streams::enter(self.step.device(), &self.devices)?;
        self.step.watch_stream();
        if self.step.device().is_cuda() {
            self.rehearse();
        }
        Ok(streams)
    }

    fn backward(&mut self, states: &HiddenStates<Handoff>) -> Result<(), String> {
        self.pass(states, &|_| ())
    }

    fn backward_together(
        &mut self,
        states: &HiddenStates<Handoff>,
        group: &mut dyn Collective,
    ) -> Result<Result<(), Ended>, String> {
        if !self.overlaps {
            self.backward(states)?;
            return Ok(self.reduce(group));
        }
        let overlap = self.overlap()?;
        let stream = self.step.drafter.stream;
        let ((), reduced) = overlap
            .run(group, stream, |weigh| self.pass(states, &|loss| weigh(loss.denominator, loss.divisor.as_ref())))?;
        self.overlap = Some(overlap);
        Ok(reduced.map(|gradients| self.keep(gradients)))
    }

    /// The mean over the drafters, weighted with the weights of their losses: the gradient of the loss over all their
    /// slots together.
    fn reduce(&mut self, group: &mut dyn Collective) -> Result<(), Ended> {
        let _guard = tch::no_grad_guard();
        let stream = self.step.drafter.stream;
        let _span = span!("drafter.reduce", &stream);
        let mut gradients = self.gradients();
        let (slots, divisor) = &self.weight;
        let weight = divisor.as_ref().map_or(*slots, |divisor| {
            let _sync = span!("sync.reduce");
            divisor.double_value(&[])
        });
        group.mean(&mut gradients, weight)?;
        self.keep(gradients);
        Ok(())
    }

    fn update(&mut self, step: usize) {
        for ((_, weight), gradient) in self.step.drafter.parameters().iter().zip(std::mem::take(&mut self.reduced)) {
            set_gradient(weight, &gradient);
        }
        let update = self.step.update(step);
        self.metrics.add(step as u64 + 1, std::mem::take(&mut self.pending), update);
    }

    fn figures(&mut self, group: &mut dyn Collective) -> Result<Figures, Ended> {
        let mut sums = self.metrics.sums();
        group.sum_numbers(&mut sums.values)?;
        let reading = sums.reading();
        Ok(Figures {
            loss: Some(reading.loss),
            accuracy: Some(reading.accuracy),
            slots: reading.slots,
            slot_losses: reading.slot_losses,
            block_acceptance: Some(reading.block_acceptance),
            steps: sums.steps,
            gradient_norm: Some(reading.gradient_norm),
            tokens_per_s: Some(reading.tokens_per_s),
            supervised_per_s: Some(reading.supervised_per_s),
        })
    }

    fn rate(&self, step: usize) -> Option<f64> {
        Some(self.learning_rate * self.step.rate_factor(step))
    }

    fn after_step(&mut self, pass: &IterationGuard, step: usize) {
        self.checkpoints.after_step(pass, &self.step, step);
    }

    fn evaluate(&mut self, step: usize, go_on: &dyn Fn() -> bool) -> Result<Option<RunEvaluation>, String> {
        let Some(examiner) = &self.examiner else { return Ok(None) };
        let found = examiner.evaluate(&self.step.drafter, go_on)?;
        if let Some(found) = found.as_ref().filter(|found| found.counts()) {
            self.checkpoints.evaluated(step, found);
            self.evaluated = Some((step, found.clone()));
        }
        Ok(found)
    }

    fn paused(&mut self, time: Duration) {
        self.metrics.paused(time);
    }

    fn at_end(&mut self, steps: usize) {
        self.checkpoints.at_end(&self.step, steps);
    }

    fn newest(&self) -> Option<PathBuf> {
        self.checkpoints.newest()
    }
}
