//! The drafters' pause for an evaluation: the first one evaluates, the others wait for it there.

use super::DrafterTrainLoop;
use crate::eval::RunEvaluation;
use crate::pipeline::work::{Learn, World};
use dflash_profiler::timeline::record::Severity;
use dflash_profiler::{Kind, begin_iteration, span};
use std::time::Instant;

impl<W: World> DrafterTrainLoop<'_, W> {
    /// Whether an evaluation follows the step that was made last.
    pub(super) fn evaluates(&self) -> bool {
        let (step, every) = (self.made.steps, self.shared.eval_every);
        every > 0 && (step.is_multiple_of(every) || step == self.shared.steps)
    }

    /// A pass of its own, in which nothing is learnt. What fails in it leaves a warning, and never the training's end.
    pub(super) fn evaluate(&mut self) {
        let _pass = begin_iteration(Kind::Eval);
        let began = Instant::now();
        let shared = self.shared;
        shared.pauses.begin();
        let found = if self.group.rank() == 0 {
            let _span = span!("drafter.eval");
            self.work.evaluate(self.made.steps, &|| !shared.is_stopping())
        } else {
            Ok(None)
        };
        if self.group.size() > 1 {
            let _span = span!("sync.eval");
            // A drafter that has left ends the others at their next step.
            let _ = self.group.sum_numbers(&mut [0.0]);
        }
        shared.pauses.end();
        self.tell_evaluation(found);
        let took = began.elapsed();
        self.made.paused += took.as_secs_f64();
        self.work.paused(took);
        self.waits.since += took;
    }

    fn tell_evaluation(&mut self, found: Result<Option<RunEvaluation>, String>) {
        let mut row = self.row.take();
        match found {
            Ok(Some(found)) if found.counts() => {
                let tau = found.trained.tau;
                row.get_or_insert_with(|| self.empty_row()).acceptance_length = Some(tau);
                self.shared.profiler.counter("eval.tau", "tokens").record(tau);
                let prompts = found.trained.prompts;
                self.note(&format!("evaluation: step {}, tau {tau:.3} over {prompts} prompts", self.made.steps));
            }
            Ok(Some(found)) => {
                let line = found.trained.equality_line();
                self.shared.tell(&format!(
                    "evaluation: some answers after step {} are not the target's own: {line}; their tau is not recorded",
                    self.made.steps
                ));
            }
            Ok(None) => {}
            Err(error) => self.shared.tell(&format!("evaluation: step {} could not be: {error}", self.made.steps)),
        }
        if let Some(row) = row {
            self.put(&row);
        }
    }

    fn note(&self, text: &str) {
        self.shared.profiler.mark(Severity::Info, text);
        self.shared.observer.note(text);
    }
}
