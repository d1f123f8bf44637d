//! Comparison of two sides, each one or several runs: which stage got slower, and is it sure?
//!
//! 1. Iterations of other kinds than `train` are set apart, and so are those in which a GPU's clocks were held down; the
//!    warm-up of each lane is cut by MSER-5 and reported.
//! 2. One run a side: the iterations are resampled in blocks longer than their memory, which says how uncertain median and
//!    95th percentile are. Several runs: runs are resampled first, then blocks (in closed form, see `decide.rs`).
//! 3. The ratio of medians, and that of the 95th percentiles, gets an interval and a p-value (Student's t on the
//!    logarithm); Holm's correction, or Benjamini and Hochberg's, covers all lanes × stages.
//! 4. *Regressed* or *improved* only if the whole (corrected) interval lies beyond the threshold and beyond the absolute
//!    floor. *No change* only if the whole interval lies within. All else is *inconclusive*, with the reason.
//! 5. One run a side cannot show how much runs of the same program differ: such a regression counts (exit 1) only if it
//!    also clears the threshold widened by the run noise; otherwise the outcome is inconclusive.
//! 6. Means say where the change of an iteration comes from, lane by lane ([`LaneChange`]).
//!
//! Everything is deterministic. Times of waiting (`*.wait`, `*.put`) are compared and shown but never make the whole a
//! regression: a longer wait behind a faster stage is good news, and one behind a slower stage shows there. The total is
//! a test like any other: the stages are tested whatever it says.

mod attribution;
mod autocorrelation;
mod bootstrap;
mod calibrate;
mod call;
mod correct;
mod decide;
mod estimate;
mod estimates;
mod facts;
mod forms;
mod gather;
mod iterations;
mod means;
pub(crate) mod noise;
mod options;
mod rename;
mod row;
mod rows;
mod select;
mod side;
#[cfg(test)]
mod simulation;
mod student;
mod summaries;
mod throttle;
mod warmup;

pub use attribution::{LaneChange, PartChange};
pub use calibrate::{Calibration, SPLITS, calibrate};
pub use call::{Call, Outcome};
pub use correct::Correction;
pub use facts::Fact;
pub use options::{Options, duration, probability, share};
pub use rename::Renames;
pub use row::{Change, P95, Row};
pub use select::{At, Select};
pub use side::{Clock, Cut, Key, Side};

use crate::error::{Error, Result};
use serde::Serialize;

/// Version of the JSON form.
pub const SCHEMA: u32 = 2;

/// Two sides compared.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Version of this form.
    pub schema: u32,
    /// What it means for whoever asked.
    pub outcome: Outcome,
    /// When a change counted.
    pub options: Options,
    /// Number of tests that the correction covers: medians and 95th percentiles.
    pub tests: usize,
    /// The paths of side A.
    pub a: Vec<String>,
    /// The paths of side B.
    pub b: Vec<String>,
    /// Lane by lane: `total` first, then the stages, then the residue.
    pub rows: Vec<Row>,
    /// Where each lane's change comes from, the limiting lane first. Empty where means are not known.
    pub attribution: Vec<LaneChange>,
    /// Hardware, driver, config, commit.
    pub facts: Vec<Fact>,
    /// What the warm-up cut took.
    pub cuts_a: Vec<Cut>,
    /// The same of side B.
    pub cuts_b: Vec<Cut>,
    /// Iterations of other kinds, of side A and B.
    pub set_apart: (u64, u64),
    /// Iterations with a GPU's clocks held down, which were set apart, too; `None` where nothing is known of clocks.
    pub throttled: (Option<u64>, Option<u64>),
    /// What a reader should know.
    pub notes: Vec<String>,
}

impl Comparison {
    /// Whether hardware, driver and config are the same as far as they are known.
    #[must_use]
    pub fn comparable(&self) -> bool {
        self.facts.iter().all(|fact| !fact.matters)
    }
}

/// Compares two sides.
///
/// # Errors
/// [`Error::NoCommonStage`] if they share none.
pub fn compare(a: &Side, b: &Side, options: &Options) -> Result<Comparison> {
    let (rows, tests) = call::rows(a, b, options);
    if rows.iter().all(|row| matches!(row.call, Call::Missing | Call::New)) {
        return Err(Error::NoCommonStage { a: lanes(a), b: lanes(b) });
    }
    let paths = |side: &Side| side.paths.iter().map(|path| path.display().to_string()).collect();
    let cuts = |side: &Side| side.runs.iter().flat_map(|run| run.cuts.clone()).collect();
    let set_apart = |side: &Side| side.runs.iter().map(|run| run.set_apart).sum();
    let throttled = |side: &Side| side.runs.iter().map(|run| run.throttled).sum::<Option<u64>>();
    let mut notes = notes(a, b, options);
    notes.extend(rename::guesses(&rows));
    notes.extend(partial(&rows, a, b));
    Ok(Comparison {
        schema: SCHEMA,
        outcome: Outcome::of(&rows),
        options: *options,
        tests,
        a: paths(a),
        b: paths(b),
        rows,
        attribution: attribution::attribute(a, b, options.floor_ns),
        facts: facts::compare(a, b),
        cuts_a: cuts(a),
        cuts_b: cuts(b),
        set_apart: (set_apart(a), set_apart(b)),
        throttled: (throttled(a), throttled(b)),
        notes,
    })
}

fn lanes(side: &Side) -> String {
    let mut names: Vec<&str> = side.keys().iter().map(|key| key.lane.as_str()).collect();
    names.dedup();
    names.truncate(8);
    crate::text::harmless(&names.join(", "))
}

fn notes(a: &Side, b: &Side, options: &Options) -> Vec<String> {
    let mut notes: Vec<String> = a.runs.iter().chain(&b.runs).flat_map(|run| run.notes.clone()).collect();
    if a.runs.len() == 1 && b.runs.len() == 1 {
        let needed = ((1.0 + options.threshold) * (1.0 + options.run_noise) - 1.0) * 100.0;
        let noise = options.run_noise * 100.0;
        notes.push(format!(
            "within-run evidence only: one run a side cannot show how much runs differ, so to count (exit 1) a \
             regression must clear {needed:.1} % (threshold and {noise:.1} % run noise); give several runs a side, \
             comma-separated"
        ));
    } else if a.runs.len() + b.runs.len() < 5 {
        notes
            .push("with fewer than five runs in all, only a large change can be sure; three a side are a start".into());
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

/// Stages that only some runs of a side have.
fn partial(rows: &[Row], a: &Side, b: &Side) -> Option<String> {
    let lacks = |have: usize, side: &Side| have > 0 && have < side.runs.len();
    let some = rows.iter().filter(|row| lacks(row.runs.0, a) || lacks(row.runs.1, b));
    let names: Vec<String> = some.map(|row| crate::text::harmless(&forms::name(row))).collect();
    (!names.is_empty()).then(|| format!("not in every run of its side: {}", forms::list(&names)))
}
