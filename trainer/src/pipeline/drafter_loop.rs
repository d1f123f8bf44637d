//! The lane `drafter:0`: trains the drafter on hidden states.

use super::metrics::{Counts, Metrics, Reading};
use super::observe::Step;
use super::run::{Outcome, Shared};
use super::skips::{self, Skips};
use super::target_loop::HIDDEN_STATES_FLOW;
use super::{DrafterStep, HiddenStates, Stepped, lane};
use crate::checkpoint::Snapshot;
use crate::config::Train;
use crate::drafter::DFlashDrafter;
use crate::drafter::anchors::Row;
use crate::error::TrainError;
use crate::events::MetricsLog;
use dflash_profiler::timeline::MetricsRow;
use dflash_profiler::{Kind, begin_iteration, flow_take, span};
use std::collections::HashMap;
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tch::{Device, Tensor};

/// Name of the lane.
pub(super) const LANE: &str = "drafter:0";

/// One training step for every batch of hidden states.
pub struct DrafterTrainLoop<'a> {
    shared: &'a Shared<'a>,
    settings: &'a Train,
    learner: DrafterStep,
    metrics: Metrics,
    csv: MetricsLog,
    skips: Skips,
    waits: Waits,
}

/// How much of its time the lane has waited since the last log line.
struct Waits {
    since: Instant,
    seconds: f64,
}

impl<'a> DrafterTrainLoop<'a> {
    pub(super) fn new(
        shared: &'a Shared<'a>,
        settings: &'a Train,
        drafter: DFlashDrafter,
        shared_rows: (Tensor, Tensor),
        csv: MetricsLog,
        seed: u64,
    ) -> Self {
        let block = drafter.config.block_size as usize;
        let seen = shared.samples.iter().flat_map(|s| s.ids.iter().copied());
        Self {
            learner: DrafterStep::new(settings, drafter, shared_rows, seen, seed),
            metrics: Metrics::new(block),
            skips: Skips::default(),
            waits: Waits { since: Instant::now(), seconds: 0.0 },
            shared,
            settings,
            csv,
        }
    }

    /// Goes on where a checkpoint was written.
    pub(super) fn resume(&mut self, from: Snapshot) -> Result<(), TrainError> {
        let mut tensors: HashMap<_, _> = from.tensors.into_iter().collect();
        self.learner.optimizer.restore(|name| tensors.remove(name)).map_err(|name| TrainError::Lane {
            lane: LANE,
            cause: format!("the checkpoint of step {} has no tensor `{name}` of its shape", from.state.step),
        })
    }

    /// Until the hidden states end.
    pub(super) fn run(mut self) -> Result<Outcome, String> {
        let depth = self.shared.profiler.counter("queue.hidden_states.depth", "items");
        self.learner.watch_stream();
        let (mut step, mut tokens) = (self.shared.first, 0);
        let began = Instant::now();
        loop {
            let guard = begin_iteration(self.shared.kind((step - self.shared.first) as u64));
            let Some((states, left)) = self.wait() else {
                guard.kind(Kind::Drain);
                break;
            };
            depth.record(left as f64);
            flow_take(HIDDEN_STATES_FLOW + states.number);
            let own = self.shared.tokens(&states.samples);
            guard.tokens(own);
            tokens += own;
            self.train(&states, step);
            step += 1;
            let reading = self.read_back(step);
            {
                let _span = span!("drafter.log");
                self.log(step, reading)?;
            }
            self.shared.checkpoints.after_step(&guard, &self.learner, step);
        }
        let tokens_per_s = tokens as f64 / began.elapsed().as_secs_f64().max(1e-9);
        self.shared.checkpoints.at_end(&self.learner, step);
        let seconds = began.elapsed().as_secs_f64();
        Ok(Outcome { drafter: self.learner.drafter, steps: step, tokens_per_s, loop_seconds: vec![(LANE, seconds)] })
    }

    fn wait(&mut self) -> Option<(HiddenStates, usize)> {
        let _span = span!("drafter.wait");
        let began = Instant::now();
        let taken = self.shared.hidden_states.take();
        self.waits.seconds += began.elapsed().as_secs_f64();
        taken
    }

    fn train(&mut self, states: &HiddenStates, step: usize) {
        let rows: Vec<Row<'_>> = states.samples.iter().map(|&i| self.shared.samples[i].row()).collect();
        let Stepped { loss, slots, norm } = self.learner.run(&states.taps, &rows, step);
        let supervised = self.shared.supervised(&states.samples);
        let counts = Counts { tokens: self.shared.tokens(&states.samples), supervised };
        self.metrics.add((&loss, slots, norm), step as u64 + 1, &states.samples, counts);
    }

    /// Reads the figures back every `log_every` steps: the one place where this lane waits for its device, and so a stage
    /// of its own.
    fn read_back(&mut self, step: usize) -> Option<Reading> {
        let due = (step as u64).is_multiple_of(self.shared.log_every) || step == self.settings.steps;
        due.then(|| {
            let _span = span!("sync.metrics");
            self.metrics.read()
        })
    }

    /// Reports what was read back; otherwise only counts the step. Too many losses in a row that are no numbers end the
    /// lane.
    fn log(&mut self, step: usize, reading: Option<Reading>) -> Result<(), String> {
        let due = reading.is_some();
        if let Some(reading) = &reading {
            self.check(step, reading)?;
            self.write(step, reading);
        }
        self.shared.observer.step(&Step {
            step,
            steps: self.settings.steps,
            loss: reading.as_ref().map(|r| r.loss),
            accuracy: reading.as_ref().map(|r| r.accuracy),
            tokens_per_s: reading.as_ref().map(|r| r.tokens_per_s),
            waiting: if due { self.waiting() } else { String::new() },
        });
        if due {
            lane::report(self.shared.observer, LANE, step as u64 - 1);
        }
        Ok(())
    }

    fn write(&mut self, step: usize, r: &Reading) {
        let rate = self.settings.learning_rate * self.learner.rate_factor(step - 1);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let row = MetricsRow {
            attempt: self.shared.attempt,
            step: step as u64,
            time_ns: i64::try_from(now.as_nanos()).unwrap_or(i64::MAX),
            loss: Some(r.loss),
            accuracy: Some(r.accuracy),
            slots: r.slots.clone(),
            learning_rate: Some(rate),
            gradient_norm: Some(r.gradient_norm),
            acceptance_length: None,
            simulated_acceptance_length: Some(r.simulated_acceptance()),
            block_acceptance_length: Some(r.block_acceptance),
            skipped: Some(self.skips.total()),
            slot_losses: r.slot_losses.clone(),
            tokens_per_s: Some(r.tokens_per_s),
            supervised_tokens_per_s: Some(r.supervised_per_s),
        };
        // A full disk costs the metrics, never the training; the profiler says so too.
        if let Err(error) = self.csv.write(&row) {
            self.shared.warn(&error);
        }
    }

    fn check(&mut self, step: usize, reading: &Reading) -> Result<(), String> {
        for skipped in &reading.steps {
            if let Some(skipped) = skipped {
                self.shared.tell(&skipped.text());
            }
            if !self.skips.note(skipped.is_some()) {
                return Err(skips::end_text(step, self.shared.checkpoints.newest().as_deref()));
            }
        }
        Ok(())
    }

    fn waiting(&mut self) -> String {
        let all = self.waits.since.elapsed().as_secs_f64().max(1e-9);
        let share = self.waits.seconds / all;
        self.waits = Waits { since: Instant::now(), seconds: 0.0 };
        let target = self.shared.target_wait.take_share(all);
        if share >= target {
            format!("drafter waits {:.0} % for hidden states", share * 100.0)
        } else {
            format!("target waits {:.0} % for room", target * 100.0)
        }
    }
}

/// Where embedding and head should be for a drafter on `device`.
pub(super) fn shared_rows(target: &crate::target::Target, device: Device) -> (Tensor, Tensor) {
    (target.embedding.to_device(device), target.head.to_device(device))
}
