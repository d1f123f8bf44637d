//! The evaluation of a drafter while it is trained.

use super::lane::cause_text;
use crate::drafter::DFlashDrafter;
use crate::eval::{DecodeOptions, RunEvaluation, evaluate_while};
use crate::target::Target;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What a drafter is evaluated on while it is trained.
#[derive(Clone, Debug)]
pub struct HeldOut {
    /// Prompts that are not trained on.
    pub prompts: Vec<Vec<i64>>,
    /// How they are answered.
    pub options: DecodeOptions,
}

/// A target of its own for them: other threads use theirs meanwhile.
pub(super) struct Examiner {
    pub(super) target: Target,
    pub(super) held_out: HeldOut,
}

impl Examiner {
    /// Evaluates the drafter as an export of it would be served; `go_on` is asked between prompts. Draws nothing of what the
    /// training draws, and changes nothing of what it reads. `None`: it was given up.
    ///
    /// # Errors
    /// What libtorch said, such as that memory ran out.
    pub(super) fn evaluate(
        &self,
        drafter: &DFlashDrafter,
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<RunEvaluation>, String> {
        let HeldOut { prompts, options } = &self.held_out;
        let work = || {
            let served = drafter.as_served(self.target.kind(), self.target.device());
            evaluate_while(&self.target, &served, prompts, options, |_| go_on())
        };
        let found = catch_unwind(AssertUnwindSafe(work)).map_err(|cause| cause_text(cause.as_ref()))?;
        Ok(found.map(|found| RunEvaluation::of(found, &self.target, options.temperature)))
    }
}
