//! Estimates of every stage of both sides, on as many threads as are worth it.

use super::decide::Ratio;
use super::estimate::{Estimate, Point};
use super::side::{Key, Observed, Side};
use std::thread;

/// Values below which a further thread costs more than it brings.
const WORTH_A_THREAD: usize = 100_000;
/// Reports (each one observation) that a side needs.
const FEWEST_REPORTS: usize = 4;

/// What is known of one stage.
pub(super) struct Known {
    pub a: Vec<Estimate>,
    pub b: Vec<Estimate>,
    /// Both sides hold the very same values: a run against itself.
    pub same: bool,
}

/// Estimates every stage.
pub(super) fn all(keys: &[&Key], a: &Side, b: &Side) -> Vec<Known> {
    let values = |side: &Side| side.runs.iter().flat_map(|run| run.observed.values()).map(Observed::len).sum::<usize>();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = ((values(a) + values(b)) / WORTH_A_THREAD).clamp(1, cores);
    let of = |keys: &[&Key]| keys.iter().map(|key| Known::of(key, a, b)).collect::<Vec<_>>();
    if threads == 1 {
        return of(keys);
    }
    thread::scope(|scope| {
        let chunks = keys.chunks(keys.len().div_ceil(threads).max(1));
        let handles: Vec<_> = chunks.map(|keys| (keys, scope.spawn(move || of(keys)))).collect();
        // A thread that ended badly, which counting gives no cause for: its stages are estimated here.
        handles.into_iter().flat_map(|(keys, handle)| handle.join().unwrap_or_else(|_| of(keys))).collect()
    })
}

impl Observed {
    fn len(&self) -> usize {
        if let Self::Series(values) = self { values.len() } else { 1 }
    }

    fn estimate(&self) -> Option<Estimate> {
        match self {
            Self::Series(values) => Estimate::of(values),
            Self::Summary { median, p95, n } => Some(Estimate::of_summary(*median, *p95, *n)),
        }
    }
}

impl Known {
    fn of(key: &Key, a: &Side, b: &Side) -> Self {
        let (of_a, of_b) = (a.observed(key), b.observed(key));
        let whole = of_a.iter().all(|observed| matches!(observed, Observed::Series(_)));
        let same = whole && !of_a.is_empty() && of_a == of_b;
        let estimates = |observed: Vec<&Observed>| observed.into_iter().filter_map(Observed::estimate).collect();
        Self { a: estimates(of_a), b: estimates(of_b), same }
    }

    /// One run a side: what runs of one program differ by cannot be seen.
    pub(super) fn one_a_side(&self) -> bool {
        self.a.len() == 1 && self.b.len() == 1
    }

    /// Compares a percentile, or says why not.
    pub(super) fn ratio(&self, a: &[Point], b: &[Point]) -> Result<Ratio, String> {
        let summary = |e: &Estimate| e.effective.is_nan();
        if self.same {
            return Ok(Ratio { log: 0.0, error: 1e-9, df: 1e6 });
        }
        if self.a.iter().chain(&self.b).any(summary) && self.a.len().min(self.b.len()) < FEWEST_REPORTS {
            return Err(format!(
                "a stages.csv is one observation: give at least {FEWEST_REPORTS} a side, or iterations.csv"
            ));
        }
        super::decide::ratio(a, b)
    }
}

/// The medians of a side's runs.
pub(super) fn medians(runs: &[Estimate]) -> Vec<Point> {
    runs.iter().map(|estimate| estimate.median).collect()
}

/// The 95th percentiles of a side's runs; none if one run does not know it.
pub(super) fn p95s(runs: &[Estimate]) -> Vec<Point> {
    runs.iter().map(|estimate| estimate.p95).collect::<Option<Vec<_>>>().unwrap_or_default()
}
