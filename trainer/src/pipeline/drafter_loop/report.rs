//! What a drafter's loop tells of its steps.

use super::{DrafterTrainLoop, Waits};
use crate::loss::simulated_acceptance;
use crate::pipeline::observe::Step;
use crate::pipeline::work::{Figures, Learn, World};
use dflash_profiler::timeline::MetricsRow;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

impl<W: World> DrafterTrainLoop<'_, W> {
    pub(super) fn report(&mut self, figures: Option<&Figures>) {
        if let Some(figures) = figures {
            self.write(figures);
        }
        self.shared.observer.step(&Step {
            step: self.made.steps,
            steps: self.shared.steps,
            loss: figures.and_then(|f| f.loss),
            accuracy: figures.and_then(|f| f.accuracy),
            tokens_per_s: figures.and_then(|f| f.tokens_per_s),
            waiting: if figures.is_some() { self.waiting() } else { String::new() },
        });
    }

    fn write(&mut self, f: &Figures) {
        let step = self.made.steps;
        let row = MetricsRow {
            loss: f.loss,
            accuracy: f.accuracy,
            slots: f.slots.clone(),
            learning_rate: self.work.rate(step - 1),
            gradient_norm: f.gradient_norm,
            simulated_acceptance_length: f.accuracy.map(|_| simulated_acceptance(&f.slots)),
            block_acceptance_length: f.block_acceptance,
            skipped: f.loss.map(|_| self.skips.total()),
            slot_losses: f.slot_losses.clone(),
            tokens_per_s: f.tokens_per_s,
            supervised_tokens_per_s: f.supervised_per_s,
            ..self.empty_row()
        };
        // One row a step: that of one that is evaluated waits for it.
        if self.evaluates() {
            self.row = Some(row);
        } else {
            self.put(&row);
        }
    }

    pub(super) fn put(&mut self, row: &MetricsRow) {
        // A full disk costs the metrics, never the training; the profiler says so too.
        if let Some(Err(error)) = self.csv.as_mut().map(|csv| csv.write(row)) {
            self.shared.warn(&error);
        }
    }

    /// A row of the last step without figures.
    pub(super) fn empty_row(&self) -> MetricsRow {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        MetricsRow {
            attempt: self.shared.attempt,
            step: self.made.steps as u64,
            time_ns: i64::try_from(now.as_nanos()).unwrap_or(i64::MAX),
            ..MetricsRow::default()
        }
    }

    fn waiting(&mut self) -> String {
        let all = self.waits.since.elapsed().as_secs_f64().max(1e-9);
        let share = self.waits.seconds / all;
        self.waits = Waits { since: Instant::now(), seconds: 0.0 };
        let target = self.shared.target_wait.take_share(all) / self.shared.targets as f64;
        if share >= target {
            format!("drafter waits {:.0} % for hidden states", share * 100.0)
        } else {
            format!("target waits {:.0} % for room", target * 100.0)
        }
    }
}
