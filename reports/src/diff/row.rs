//! One stage of one lane, compared.

use super::decide::{Bounds, Ratio, middle};
use super::estimate::Estimate;
use super::estimates::{Known, medians, p95s};
use super::side::{Clock, Key};
use super::{Call, Options};
use crate::stages::is_wait;
use serde::Serialize;

/// One stage of one lane, compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    /// Which stage, by which clock.
    #[serde(flatten)]
    pub key: Key,
    /// What side A calls it, if `--map` says so.
    pub renamed_from: Option<String>,
    /// The verdict, by the medians.
    pub call: Call,
    /// Whether it counts for the outcome. Waiting does not, nor does device time that only one side has.
    pub gates: bool,
    /// Whether a change is larger than what runs of the same program differ by, too. With one run a side only such a
    /// regression counts (exit 1).
    pub beyond_run_noise: bool,
    /// Median of side A, nanoseconds.
    pub median_a_ns: Option<f64>,
    /// Median of side B.
    pub median_b_ns: Option<f64>,
    /// B ÷ A.
    pub ratio: Option<f64>,
    /// Its interval at level 1 - alpha, not corrected for the number of tests.
    pub interval: Option<(f64, f64)>,
    /// p-value of "no change beyond the threshold", corrected.
    pub p: Option<f64>,
    /// The 95th percentile.
    pub p95: P95,
    /// Iterations of A and B.
    pub n: (usize, usize),
    /// Independent iterations that would be as good.
    pub effective_n: (Option<f64>, Option<f64>),
    /// Runs of A and B that have it.
    pub runs: (usize, usize),
    /// Why it is inconclusive.
    pub reason: Option<String>,
}

/// The 95th percentile of a stage, compared. It can show a regression that the median does not have; that it is not sure
/// makes nothing inconclusive.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct P95 {
    /// Of side A, nanoseconds.
    pub a_ns: Option<f64>,
    /// Of side B.
    pub b_ns: Option<f64>,
    /// `None` if there are too few iterations.
    #[serde(flatten)]
    pub change: Option<Change>,
}

/// A tested ratio.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// The verdict.
    pub call: Call,
    /// Whether it is larger than what runs of the same program differ by, too.
    pub beyond_run_noise: bool,
    /// B ÷ A.
    pub ratio: f64,
    /// Its interval at level 1 - alpha.
    pub interval: Option<(f64, f64)>,
    /// p-value of "no change beyond the threshold", corrected.
    pub p: f64,
    /// Why it is inconclusive.
    #[serde(skip)]
    pub(super) reason: Option<String>,
}

impl Change {
    /// `p`: corrected, of the plain and the widened bounds.
    pub(super) fn of(ratio: &Ratio, bounds: &Bounds, (p, p_widened): (f64, f64), options: &Options) -> Self {
        let (low, high) = ratio.interval(options.alpha);
        let (down, up) = bounds.plain;
        let (call, reason) = if p <= options.alpha {
            (if ratio.log > 0.0 { Call::Regressed } else { Call::Improved }, None)
        } else if low >= down && high <= up {
            (Call::NoChange, None)
        } else if low > up || high < down {
            (Call::Inconclusive, Some("not sure enough among so many stages"))
        } else {
            (Call::Inconclusive, Some("the interval reaches over the threshold"))
        };
        let interval = Some((low.exp(), high.exp())).filter(|(low, high)| low.is_finite() && high.is_finite());
        let beyond_run_noise = p_widened <= options.alpha;
        Self { call, beyond_run_noise, ratio: ratio.log.exp(), interval, p, reason: reason.map(str::to_owned) }
    }
}

impl Row {
    /// What is known before any test.
    pub(super) fn untested(key: &Key, known: &Known) -> Self {
        let (no_a, no_b) = (known.a.is_empty(), known.b.is_empty());
        let call = match (no_a, no_b) {
            (true, _) => Call::New,
            (_, true) => Call::Missing,
            _ => Call::Inconclusive,
        };
        let one_sided = no_a || no_b;
        let gates = if one_sided { key.clock == Clock::Host } else { !is_wait(&key.stage) };
        let sum = |runs: &[Estimate]| runs.iter().map(|e| e.n).sum();
        let effective = |runs: &[Estimate]| {
            let sum = runs.iter().map(|e| e.effective).sum::<f64>();
            (sum.is_finite() && !runs.is_empty()).then_some(sum)
        };
        let median = |runs: &[Estimate]| (!runs.is_empty()).then(|| middle(&medians(runs)));
        let p95 = |runs: &[Estimate]| Some(p95s(runs)).filter(|p95s| !p95s.is_empty()).map(|p95s| middle(&p95s));
        Self {
            key: key.clone(),
            renamed_from: None,
            call,
            gates,
            beyond_run_noise: false,
            median_a_ns: median(&known.a),
            median_b_ns: median(&known.b),
            ratio: None,
            interval: None,
            p: None,
            p95: P95 { a_ns: p95(&known.a), b_ns: p95(&known.b), change: None },
            n: (sum(&known.a), sum(&known.b)),
            effective_n: (effective(&known.a), effective(&known.b)),
            runs: (known.a.len(), known.b.len()),
            reason: None,
        }
    }

    /// Takes over what the test of the medians says.
    pub(super) fn decide(&mut self, change: Change) {
        self.call = change.call;
        self.beyond_run_noise = change.beyond_run_noise;
        self.ratio = Some(change.ratio);
        self.interval = change.interval;
        self.p = Some(change.p);
        self.reason = change.reason;
    }

    /// A regression that counts: it gates, and is beyond what runs differ by.
    pub(super) fn is_regression(&self) -> bool {
        self.gates && (self.beyond_run_noise && self.call == Call::Regressed || self.p95_regressed(true))
    }

    /// A regression by these runs alone: other runs of the same program may differ by as much.
    pub(super) fn is_within_run(&self) -> bool {
        self.gates && !self.is_regression() && (self.call == Call::Regressed || self.p95_regressed(false))
    }

    /// Nothing that gates can be said for sure.
    pub(super) fn is_open(&self) -> bool {
        let unsure = matches!(self.call, Call::Inconclusive | Call::Missing | Call::New);
        self.gates && unsure || self.is_within_run()
    }

    pub(super) fn p95_regressed(&self, beyond_run_noise: bool) -> bool {
        let change = self.p95.change.as_ref();
        change.is_some_and(|p95| p95.call == Call::Regressed && p95.beyond_run_noise == beyond_run_noise)
    }
}
