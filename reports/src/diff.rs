//! Comparison of two sides, each one or several runs: which stage got slower, and is it sure?
//!
//! 1. Iterations of other kinds than `train` are set apart; the warm-up of each lane is cut by MSER-5 and reported.
//! 2. One run a side: the spread of batch medians (batches several autocorrelation times long, at most 20) says how
//!    uncertain each median is. Several runs: each run's median is one observation, the spread between runs is pooled.
//! 3. The ratio of medians gets an interval and a p-value (Student's t on the logarithm); Holm's correction covers all
//!    lanes × stages.
//! 4. *Regressed* or *improved* only if the whole (corrected) interval lies beyond the threshold and beyond the absolute
//!    floor. *No change* only if the whole interval lies within. All else is *inconclusive*, with the reason.
//! 5. One run a side cannot show how much runs of the same program differ, so the threshold is widened by the run noise.
//!
//! Everything is deterministic. Times of waiting (`*.wait`, `*.put`) are compared and shown but never make the whole a
//! regression: a longer wait behind a faster stage is good news, and one behind a slower stage shows there.

mod call;
mod decide;
mod estimate;
mod forms;
mod iterations;
#[cfg(test)]
pub(crate) mod noise;
mod options;
mod side;
#[cfg(test)]
mod simulation;
mod student;
mod summaries;
mod warmup;

pub use call::{Call, Outcome, Row};
pub use options::{Options, share};
pub use side::{Clock, Cut, Key, Side};

use crate::error::{Error, Result};
use serde::Serialize;

/// Version of the JSON form.
pub const SCHEMA: u32 = 1;

/// Two sides compared.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Version of this form.
    pub schema: u32,
    /// What it means for whoever asked.
    pub outcome: Outcome,
    /// When a change counted.
    pub options: Options,
    /// How p-values were corrected, and over how many tests.
    pub correction: &'static str,
    /// Number of tests that the correction covers.
    pub tests: usize,
    /// The paths of side A.
    pub a: Vec<String>,
    /// The paths of side B.
    pub b: Vec<String>,
    /// Lane by lane: `total` first, then the stages, then the residue.
    pub rows: Vec<Row>,
    /// What the warm-up cut took.
    pub cuts_a: Vec<Cut>,
    /// The same of side B.
    pub cuts_b: Vec<Cut>,
    /// Iterations of other kinds, of side A and B.
    pub set_apart: (u64, u64),
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// Compares two sides.
///
/// # Errors
/// [`Error::NoCommonStage`] if they share none.
pub fn compare(a: &Side, b: &Side, options: &Options) -> Result<Comparison> {
    let rows = call::rows(a, b, options);
    let tests = rows.iter().filter(|row| row.p.is_some()).count();
    if rows.iter().all(|row| matches!(row.call, Call::Missing | Call::New)) {
        return Err(Error::NoCommonStage { a: lanes(a), b: lanes(b) });
    }
    let paths = |side: &Side| side.paths.iter().map(|path| path.display().to_string()).collect();
    let cuts = |side: &Side| side.runs.iter().flat_map(|run| run.cuts.clone()).collect();
    let set_apart = |side: &Side| side.runs.iter().map(|run| run.set_apart).sum();
    Ok(Comparison {
        schema: SCHEMA,
        outcome: Outcome::of(&rows),
        options: *options,
        correction: "holm",
        tests,
        a: paths(a),
        b: paths(b),
        rows,
        cuts_a: cuts(a),
        cuts_b: cuts(b),
        set_apart: (set_apart(a), set_apart(b)),
        notes: notes(a, b, options),
    })
}

fn lanes(side: &Side) -> String {
    let mut names: Vec<&str> = side.keys().iter().map(|key| key.lane.as_str()).collect();
    names.dedup();
    names.truncate(8);
    crate::text::harmless(&names.join(", "))
}

fn notes(a: &Side, b: &Side, options: &Options) -> Vec<String> {
    let mut notes = Vec::new();
    if a.runs.len() == 1 && b.runs.len() == 1 {
        let needed = ((1.0 + options.threshold) * (1.0 + options.run_noise) - 1.0) * 100.0;
        let noise = options.run_noise * 100.0;
        notes.push(format!(
            "within-run evidence only: one run a side cannot show how much runs differ, so a change must clear \
             {needed:.1} % (threshold and {noise:.1} % run noise); give several runs a side, comma-separated"
        ));
    }
    let same = |x: &std::path::PathBuf| b.paths.iter().any(|y| x.canonicalize().ok() == y.canonicalize().ok());
    if a.paths.iter().any(same) {
        notes.push("a run stands on both sides".into());
    }
    let half =
        |side: &Side| side.runs.iter().flat_map(|run| &run.cuts).any(|cut| cut.cut > 0 && cut.cut * 5 / 2 >= cut.of);
    if half(a) || half(b) {
        notes.push("a lane was still settling over two fifths of its run or more; a longer run says more".into());
    }
    notes
}
