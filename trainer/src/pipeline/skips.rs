//! Steps whose loss or gradient is no number: counted, told, and after some in a row the end of the training.

use crate::checkpoint::EXPORT;
use std::path::Path;

/// So many in a row end a training: what makes them is no single bad text.
pub(super) const MOST: u64 = 10;

/// A step that was skipped.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Skipped {
    /// Its number, from 1.
    pub(super) step: u64,
    pub(super) loss: f64,
    pub(super) norm: f64,
    /// The samples of its batch.
    pub(super) samples: Vec<usize>,
}

impl Skipped {
    /// One line for the log and the timeline.
    pub(super) fn text<'a>(&self, name: impl Fn(usize) -> &'a str) -> String {
        let ids: Vec<_> = self.samples.iter().map(|&sample| name(sample)).collect();
        format!(
            "step {} is skipped: its loss is {}, its gradient norm {}; samples {}",
            self.step,
            self.loss,
            self.norm,
            ids.join(", ")
        )
    }
}

/// Counts them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Skips {
    total: u64,
    in_a_row: u64,
}

impl Skips {
    /// Takes note of a step; false after too many in a row.
    pub(super) fn note(&mut self, skipped: bool) -> bool {
        self.in_a_row = if skipped { self.in_a_row + 1 } else { 0 };
        self.total += u64::from(skipped);
        self.in_a_row < MOST
    }

    /// Since the attempt began.
    pub(super) fn total(&self) -> u64 {
        self.total
    }
}

/// Why the training ends; `last` is the newest checkpoint.
pub(super) fn end_text(step: usize, last: Option<&Path>) -> String {
    // Not by --resume: a run goes on as it was configured.
    let init = last.map(|last| format!(" and [drafter] init = {:?}", last.join(EXPORT).display().to_string()));
    format!(
        "{MOST} steps in a row up to step {step} had a loss or a gradient that is no number; look for weights that are no \
         numbers in the target, or begin a new run with a lower learning rate{}",
        init.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_row_without_a_gap_ends_it() {
        let mut skips = Skips::default();
        assert!((0..9).all(|_| skips.note(true)) && skips.note(false));
        assert!((0..9).all(|_| skips.note(true)));
        assert!(!skips.note(true));
        assert_eq!(skips.total(), 19);
    }

    #[test]
    fn a_skipped_step_names_its_samples() {
        let skipped = Skipped { step: 7, loss: f64::NAN, norm: 1.5, samples: vec![3, 4] };
        assert_eq!(
            skipped.text(|i| ["", "", "", "a", "b"][i]),
            "step 7 is skipped: its loss is NaN, its gradient norm 1.5; samples a, b"
        );
    }

    #[test]
    fn the_end_says_what_can_be_done() {
        let text = end_text(17, Some(Path::new("c")));
        assert!(text.contains("up to step 17 ") && !text.contains("--resume"), "{text}");
        assert!(
            text.ends_with("begin a new run with a lower learning rate and [drafter] init = \"c/export\""),
            "{text}"
        );
        assert!(end_text(1, None).ends_with("or begin a new run with a lower learning rate"));
    }
}
