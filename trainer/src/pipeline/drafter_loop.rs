//! The lanes `drafter:0`, `drafter:1`, …: train a drafter on hidden states, all of them in step.

mod evaluate;
mod report;

use super::HiddenStates;
use super::collective::{Collective, Ended, Leave, Threads};
use super::shared::Shared;
use super::skips::{self, Skips};
use super::target_loop::{Depths, HIDDEN_STATES_FLOW};
use super::work::{Figures, Learn, World};
use crate::events::MetricsLog;
use dflash_profiler::timeline::MetricsRow;
use dflash_profiler::{Kind, begin_iteration, flow_take, span};
use std::time::Instant;

/// Name of a lane.
pub(super) fn lane(index: usize) -> String {
    format!("drafter:{index}")
}

/// One training step for every batch of hidden states.
pub(super) struct DrafterTrainLoop<'a, W: World> {
    shared: &'a Shared<'a, W>,
    /// Number among the drafters of this process.
    index: usize,
    lane: String,
    work: W::Drafter,
    group: Box<dyn Collective>,
    /// The first drafter reports for all.
    csv: Option<MetricsLog>,
    skips: Skips,
    waits: Waits,
    made: Made,
    /// Steps whose figures have been read back.
    read: usize,
    /// A row that waits for its step's evaluation.
    row: Option<MetricsRow>,
}

/// Why a loop ends before its time.
enum Fault {
    /// The work cannot go on.
    Work(String),
    /// Too many steps in a row were skipped: the weights are those before them, and good.
    Skips,
    /// Another process is gone: what was learnt up to here is good.
    Gone(String),
}

/// What a drafter's loop leaves.
pub(super) struct Learnt<T> {
    pub(super) work: T,
    pub(super) made: Made,
}

/// What a drafter has done.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Made {
    pub(super) steps: usize,
    pub(super) tokens: u64,
    pub(super) seconds: f64,
    /// Of those, the ones in which it was evaluated.
    pub(super) paused: f64,
}

/// How much of its time the lane has waited since the last log line.
struct Waits {
    since: Instant,
    seconds: f64,
}

impl<'a, W: World> DrafterTrainLoop<'a, W> {
    pub(super) fn new(
        shared: &'a Shared<'a, W>,
        work: W::Drafter,
        index: usize,
        group: Box<dyn Collective>,
        csv: Option<MetricsLog>,
    ) -> Self {
        let waits = Waits { since: Instant::now(), seconds: 0.0 };
        let made = Made { steps: shared.first, ..Made::default() };
        Self {
            shared,
            index,
            lane: lane(index),
            work,
            group,
            csv,
            skips: Skips::default(),
            waits,
            read: made.steps,
            made,
            row: None,
        }
    }

    /// Until the hidden states end, or another drafter does.
    pub(super) fn run(mut self) -> Result<Learnt<W::Drafter>, String> {
        // They go before the work is handed to the main thread, and so all that the lane has queued is done by then.
        let streams = self.work.begin();
        let began = Instant::now();
        let ended = streams.as_ref().map_err(|error| Fault::Work(error.clone())).and_then(|_| self.loop_());
        // Its step will not be evaluated any more, or was before.
        if let Some(row) = self.row.take() {
            self.put(&row);
        }
        if !matches!(ended, Err(Fault::Work(_))) && self.group.rank() == 0 {
            self.work.at_end(self.made.steps);
        }
        self.made.seconds = began.elapsed().as_secs_f64();
        self.group.leave(if ended.is_ok() { Leave::Done } else { Leave::Failed });
        match ended {
            Err(Fault::Work(cause) | Fault::Gone(cause)) => Err(cause),
            // The first drafter says so for all, which make and skip the same steps: it knows the last checkpoint.
            Err(Fault::Skips) if self.group.rank() == 0 => {
                Err(skips::end_text(self.made.steps, self.work.newest().as_deref()))
            }
            _ => Ok(Learnt { work: self.work, made: self.made }),
        }
    }

    fn loop_(&mut self) -> Result<(), Fault> {
        let depths = Depths::new(self.shared);
        let batches = (self.shared.steps - self.shared.first.min(self.shared.steps)) * self.shared.accumulate;
        for batch in 0..batches {
            let guard = begin_iteration(self.shared.kind(batch as u64));
            let Some((states, left)) = self.wait() else {
                guard.kind(Kind::Drain);
                return self.last_figures();
            };
            depths.record(left);
            flow_take(HIDDEN_STATES_FLOW + states.number);
            let own = self.shared.tokens(&states.samples);
            guard.tokens(own);
            // A step that not all drafters can make is nobody's.
            if let Err(ended) = self.backward(&states).map_err(Fault::Work)? {
                guard.kind(Kind::Drain);
                return match ended {
                    Ended::Gone(gone) => Err(Fault::Gone(gone.to_string())),
                    Ended::Left(_) | Ended::Failed(_) => self.last_figures(),
                };
            }
            self.made.tokens += own;
            if !(batch + 1).is_multiple_of(self.shared.accumulate) {
                continue;
            }
            self.work.update(self.made.steps);
            self.made.steps += 1;
            let figures = self.read_back();
            {
                let _span = span!("drafter.log");
                self.log(figures)?;
            }
            if self.group.rank() == 0 {
                self.work.after_step(&guard, self.made.steps);
            }
            drop(guard);
            if self.evaluates() {
                self.evaluate();
            }
        }
        Ok(())
    }

    /// Gradients of a batch, those of all drafters together.
    fn backward(&mut self, states: &HiddenStates<W::Taps>) -> Result<Result<(), Ended>, String> {
        if self.group.size() > 1 {
            return self.work.backward_together(states, self.group.as_mut());
        }
        self.work.backward(states).map(Ok)
    }

    fn wait(&mut self) -> Option<(HiddenStates<W::Taps>, super::Depth)> {
        let _span = span!("drafter.wait");
        let began = Instant::now();
        let taken = self.shared.hidden_states.take(if self.shared.strict { self.index } else { 0 });
        self.waits.seconds += began.elapsed().as_secs_f64();
        taken
    }

    /// Reads the figures back every `log_every` steps: the one place where this lane waits for its device, and so a stage
    /// of its own.
    fn read_back(&mut self) -> Option<Figures> {
        let step = self.made.steps;
        let due = (step as u64).is_multiple_of(self.shared.log_every) || step == self.shared.steps;
        // The row of an evaluation has all figures: a step has one row.
        if !(due || self.evaluates()) {
            return None;
        }
        self.read = step;
        let _span = span!("sync.metrics");
        // Another drafter that ends here ends this one at its next step.
        self.work.figures(self.group.as_mut()).ok()
    }

    /// Reports the steps since the last reading before an end that came early.
    fn last_figures(&mut self) -> Result<(), Fault> {
        if self.read == self.made.steps {
            return Ok(());
        }
        self.read = self.made.steps;
        let figures = self.own_figures();
        let _span = span!("drafter.log");
        self.log(figures)
    }

    fn own_figures(&mut self) -> Option<Figures> {
        let _span = span!("sync.metrics");
        if self.group.size() == 1 {
            return self.work.figures(self.group.as_mut()).ok();
        }
        // Drafters end one after the other and share no figures any more: the first one's are those of its own share, and
        // every one tells what it has skipped.
        let mut alone: Vec<_> = Threads::group(std::slice::from_ref(&self.lane));
        let own = alone.first_mut().and_then(|alone| self.work.figures(alone).ok());
        own.map(|own| Figures { tokens_per_s: None, supervised_per_s: None, ..own })
    }

    /// Reports what was read back; otherwise only counts the step. Too many losses in a row that are no numbers end the
    /// lane.
    fn log(&mut self, figures: Option<Figures>) -> Result<(), Fault> {
        let checked = figures.as_ref().map_or(Ok(()), |figures| self.check(figures));
        if self.group.rank() == 0 {
            self.report(figures.as_ref());
        }
        if figures.is_some() {
            super::lane::report(self.shared.observer, &self.lane, self.made.steps as u64 - 1);
        }
        checked
    }

    fn check(&mut self, figures: &Figures) -> Result<(), Fault> {
        for skipped in &figures.steps {
            if let Some(skipped) = skipped {
                let samples = self.shared.samples;
                self.shared.tell(&skipped.text(|i| &samples[i].name));
            }
            if !self.skips.note(skipped.is_some()) {
                return Err(Fault::Skips);
            }
        }
        Ok(())
    }
}
