//! What the instrumentation costs, from bare iterations and the instrumented ones beside them.
//!
//! A pair is a bare iteration and one of kind `train` right before or right after it, on one lane; each iteration stands
//! in one pair at most, as drawn from the front. d = ln(instrumented ÷ bare), by the iterations' host durations: the two
//! are so near that both see the same machine. The cost is exp(m) - 1, where m is the middle of the d's, and its 95 %
//! interval that of Wilcoxon's signed-rank test. The profiler computes the same of its last pairs while the run goes on;
//! this one is made anew from the records alone. Pairs from before the level last changed say nothing about now.

use super::signed_rank;
use dflash_timeline::record::{Iteration, Kind, LaneId};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};

/// Fewest pairs that give an interval of 95 %.
pub const FEWEST_PAIRS: usize = 6;
/// Most pairs that are looked at, the latest ones: the work grows with their square.
const MOST_PAIRS: usize = 200;

/// A cost with its 95 % interval, as a share of the time without instrumentation: 0.01 is 1 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// The estimate.
    pub middle: f64,
    /// Upper end.
    pub high: f64,
}

/// The pairs of all lanes, of iterations that begin at some time or later.
#[derive(Debug)]
pub(crate) struct Pairs {
    from_ns: i64,
    lanes: BTreeMap<LaneId, Lane>,
}

#[derive(Debug, Default)]
struct Lane {
    /// The last iteration, if it is in no pair.
    before: Option<Iteration>,
    /// Logarithms of instrumented ÷ bare duration, one a pair.
    logs: VecDeque<f64>,
}

impl Pairs {
    pub(crate) fn from(from_ns: i64) -> Self {
        Self { from_ns, lanes: BTreeMap::new() }
    }

    /// Takes an iteration of the window.
    pub(crate) fn add(&mut self, iteration: &Iteration) {
        if iteration.begin_ns < self.from_ns {
            return;
        }
        let lane = self.lanes.entry(iteration.lane).or_default();
        let ratio = lane.before.as_ref().and_then(|before| log_ratio(before, iteration));
        lane.before = ratio.is_none().then_some(*iteration);
        if let Some(ratio) = ratio {
            if lane.logs.len() == MOST_PAIRS {
                lane.logs.pop_front();
            }
            lane.logs.push_back(ratio);
        }
    }

    /// Takes over other lanes.
    pub(crate) fn join(&mut self, other: Self) {
        self.lanes.extend(other.lanes);
    }

    pub(super) fn logs(&self, lane: LaneId) -> impl Iterator<Item = f64> {
        self.lanes.get(&lane).into_iter().flat_map(|lane| lane.logs.iter().copied())
    }
}

/// `None` if the two are no pair.
fn log_ratio(first: &Iteration, second: &Iteration) -> Option<f64> {
    let (with, without) = match (first.kind, second.kind) {
        (Kind::Train, Kind::Bare) => (first, second),
        (Kind::Bare, Kind::Train) => (second, first),
        _ => return None,
    };
    let comparable =
        first.number.checked_add(1) == Some(second.number) && first.duration_ns.min(second.duration_ns) > 0;
    comparable.then(|| (with.duration_ns as f64 / without.duration_ns as f64).ln())
}

/// The cost and its interval; `None` below [`FEWEST_PAIRS`].
pub(super) fn interval(logs: &[f64]) -> Option<Interval> {
    let (low, middle, high) = signed_rank::interval(logs)?;
    Some(Interval { low: low.exp_m1(), middle: middle.exp_m1(), high: high.exp_m1() })
}
