//! What the instrumentation costs, from bare iterations and the instrumented ones beside them.
//!
//! For each bare iteration `b` of a lane with its neighbours `t` of kind `train` (the passes right before and right
//! after it; one of them is enough): d = mean(ln t) - ln b, by the iterations' host durations. The neighbours are so near
//! that both see the same machine. The cost is exp(mean d) - 1, and its 95 % interval
//! exp(mean d ± t(0.975, n - 1) · s / √n) - 1, where s is the standard deviation of the n differences. The profiler
//! computes the same while the run goes on; this one is made anew from the records alone.

use crate::diff::student;
use crate::walk::Window;
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, Kind, LaneId};
use serde::Serialize;

/// Fewest pairs that give an interval.
pub const FEWEST_PAIRS: usize = 10;
/// What the interval leaves out on each side.
const TAIL: f64 = 0.025;

/// A cost with its 95 % interval, as a share of the time without instrumentation: 0.01 is 1 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// The estimate.
    pub mean: f64,
    /// Upper end.
    pub high: f64,
}

/// Logarithms of the ratio of instrumented to bare duration, one for each bare iteration that has a neighbour.
pub(super) fn log_ratios(timeline: &Timeline, window: &Window, lane: LaneId) -> Vec<f64> {
    let of_lane: Vec<&Iteration> =
        timeline.iterations.iter().filter(|i| i.lane == lane && window.has(timeline, i)).collect();
    let beside = |at: Option<usize>, number: Option<u64>| {
        let neighbour = of_lane.get(at?)?;
        (neighbour.kind == Kind::Train && Some(neighbour.number) == number).then(|| log(neighbour))?
    };
    let ratio = |(at, bare): (usize, &&Iteration)| {
        let before = beside(at.checked_sub(1), bare.number.checked_sub(1));
        let after = beside(at.checked_add(1), bare.number.checked_add(1));
        let beside = match (before, after) {
            (Some(before), Some(after)) => f64::midpoint(before, after),
            (one, other) => one.or(other)?,
        };
        Some(beside - log(bare)?)
    };
    of_lane.iter().enumerate().filter(|(_, i)| i.kind == Kind::Bare).filter_map(ratio).collect()
}

fn log(iteration: &Iteration) -> Option<f64> {
    (iteration.duration_ns > 0).then(|| (iteration.duration_ns as f64).ln())
}

/// The cost and its interval; `None` below [`FEWEST_PAIRS`].
pub(super) fn interval(logs: &[f64]) -> Option<Interval> {
    if logs.len() < FEWEST_PAIRS {
        return None;
    }
    let n = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / n;
    let variance = logs.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let reach = student::upper_quantile(TAIL, n - 1.0) * (variance / n).sqrt();
    Some(Interval { low: (mean - reach).exp_m1(), mean: mean.exp_m1(), high: (mean + reach).exp_m1() })
}

#[cfg(test)]
mod tests {
    use super::interval;

    #[test]
    fn by_hand() {
        // Mean 0.01, standard deviation 0.01 · √(10/9); t(0.975, 9) = 2.2622.
        let logs: Vec<f64> = (0..10).map(|i| if i % 2 == 0 { 0.0 } else { 0.02 }).collect();
        let found = interval(&logs).unwrap();
        let reach = 2.262_16 * 0.01 * (10.0_f64 / 9.0).sqrt() / 10.0_f64.sqrt();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} is not {b}");
        close(found.mean, 0.01_f64.exp() - 1.0);
        close(found.low, (0.01 - reach).exp() - 1.0);
        close(found.high, (0.01 + reach).exp() - 1.0);
        assert_eq!(interval(&logs[1..]), None);
    }
}
