//! What a lane's instrumentation costs: by pairs, and by calls.

use std::collections::VecDeque;

use dflash_timeline::record::{Iteration, Kind};

use super::super::event::Pairing;
use super::CallCosts;
use super::interval::interval;

/// Pairs that are remembered: the cost is that of the last while, as the work may change.
const KEPT: usize = 64;
/// Either side of an interval of 95 %.
const TAIL: f64 = 0.025;

/// What is known of one lane.
#[derive(Debug, Default)]
pub(crate) struct LaneCost {
    /// The first of a pair: its number, how long it took, whether it was bare.
    first: Option<(u64, u64, bool)>,
    /// Logarithms of instrumented ÷ bare.
    ratios: VecDeque<f64>,
    /// There are pairs that the budget has not looked at, that are not published.
    fresh: bool,
    unpublished: bool,
    /// Since `calls` was last asked: records of spans, iterations, measured time and time of iterations in nanoseconds.
    pub spans: u64,
    iterations: u64,
    time_ns: u64,
    /// Measured time up to then.
    spent_ns: u64,
}

impl LaneCost {
    /// An iteration ended; `kind` is what the loop says it was.
    pub(crate) fn iteration(&mut self, iteration: &Iteration, pairing: Pairing) {
        let (number, ns, bare) = (iteration.number, iteration.duration_ns, pairing.is_bare());
        if !bare {
            self.iterations += 1;
            self.time_ns += ns;
        }
        let first = self.first.take();
        // A pass that turned out to be something else compares with nothing.
        if !matches!(iteration.kind, Kind::Train | Kind::Bare) || ns == 0 {
            return;
        }
        match pairing {
            Pairing::Alone => {}
            Pairing::First { .. } => self.first = Some((number, ns, bare)),
            Pairing::Second { .. } => {
                if let Some((_, first_ns, first_bare)) = first.filter(|(n, _, b)| n + 1 == number && *b != bare) {
                    let (with, without) = if first_bare { (ns, first_ns) } else { (first_ns, ns) };
                    self.add((with as f64 / without as f64).ln());
                }
            }
        }
    }

    fn add(&mut self, ratio: f64) {
        if self.ratios.len() == KEPT {
            self.ratios.pop_front();
        }
        self.ratios.push_back(ratio);
        (self.fresh, self.unpublished) = (true, true);
    }

    /// Forgets the pairs: they were measured at another level.
    pub(crate) fn forget(&mut self) {
        (self.first, self.fresh, self.unpublished) = (None, false, false);
        self.ratios.clear();
    }

    /// Whether there are pairs that the budget has not looked at.
    pub(crate) fn take_fresh(&mut self) -> bool {
        std::mem::take(&mut self.fresh)
    }

    /// Whether there are pairs whose interval is not published.
    pub(crate) fn take_unpublished(&mut self) -> bool {
        std::mem::take(&mut self.unpublished)
    }

    /// The cost as a share of the bare iteration, an interval of 95 %.
    pub(crate) fn interval(&mut self) -> Option<(f64, f64)> {
        self.certain(TAIL)
    }

    /// The same, with another probability of missing on either side.
    pub(crate) fn certain(&mut self, tail: f64) -> Option<(f64, f64)> {
        interval(self.ratios.make_contiguous(), tail).map(|(low, high)| (low.exp_m1(), high.exp_m1()))
    }

    /// Calls since the last time × what a call costs, with what was measured one by one (`spent_ns`, of the whole run), as
    /// a share of the instrumented iterations' time. `None`: there were none.
    pub(crate) fn calls(&mut self, costs: &CallCosts, spent_ns: u64) -> Option<f64> {
        let (spans, iterations, time_ns) = (self.spans, self.iterations, self.time_ns);
        if time_ns == 0 {
            return None;
        }
        let measured_ns = spent_ns.saturating_sub(self.spent_ns) as f64;
        (self.spans, self.iterations, self.time_ns, self.spent_ns) = (0, 0, 0, spent_ns);
        let calls_ns = spans as f64 * costs.span_ns + iterations as f64 * costs.iteration_ns;
        Some((calls_ns + measured_ns) / time_ns as f64)
    }
}

#[cfg(test)]
mod tests {
    use dflash_timeline::record::{Iteration, Kind, LaneId};

    use super::super::CallCosts;
    use super::{LaneCost, Pairing};

    fn iteration(number: u64, duration_ns: u64, kind: Kind) -> Iteration {
        Iteration { lane: LaneId(0), number, kind, begin_ns: 0, duration_ns, cpu_ns: None, tokens: None }
    }

    /// Pairs whose instrumented half takes `percent` longer, with 5 % of noise and a trend.
    fn pairs(cost: &mut LaneCost, count: u64, percent: f64) {
        for pair in 0..count {
            let bare_first = pair % 3 == 0;
            for place in 0..2 {
                let bare = (place == 0) == bare_first;
                let number = 2 * pair + place;
                let noise = 1.0 + 0.05 * (((number * 7919) % 101) as f64 / 100.0 - 0.5) + number as f64 * 1e-4;
                let ns = 1e6 * noise * if bare { 1.0 } else { 1.0 + percent / 100.0 };
                let pairing = if place == 0 { Pairing::First { bare } } else { Pairing::Second { bare } };
                cost.iteration(&iteration(number, ns as u64, if bare { Kind::Bare } else { Kind::Train }), pairing);
            }
        }
    }

    #[test]
    fn an_interval_holds_the_true_cost() {
        let mut cost = LaneCost::default();
        assert_eq!(cost.interval(), None);
        pairs(&mut cost, 100, 3.0);
        let (low, high) = cost.interval().unwrap();
        assert!(low < 0.03 && 0.03 < high && high - low < 0.02, "{low} {high}");
        let (lower, higher) = cost.certain(5e-6).unwrap();
        assert!(lower < low && high < higher);
        assert!(cost.take_fresh() && !cost.take_fresh());
    }

    #[test]
    fn what_is_no_pair_is_not_compared() {
        let mut cost = LaneCost::default();
        let (first, second) = (Pairing::First { bare: true }, Pairing::Second { bare: false });
        cost.iteration(&iteration(0, 10, Kind::Bare), first);
        cost.iteration(&iteration(2, 10, Kind::Train), second);
        cost.iteration(&iteration(4, 10, Kind::Bare), first);
        cost.iteration(&iteration(5, 900, Kind::Checkpoint), second);
        cost.iteration(&iteration(6, 10, Kind::Bare), first);
        cost.iteration(&iteration(7, 10, Kind::Warmup), Pairing::Alone);
        assert!(!cost.take_fresh());
    }

    #[test]
    fn calls_times_cost_per_call() {
        let mut cost = LaneCost::default();
        let costs = CallCosts { span_ns: 20.0, iteration_ns: 2_000.0 };
        assert_eq!(cost.calls(&costs, 0), None);
        cost.iteration(&iteration(0, 1_000_000, Kind::Train), Pairing::Alone);
        cost.spans = 100;
        assert_eq!(cost.calls(&costs, 6_000), Some(0.01), "2 µs of spans, 2 of the iteration, 6 measured");
        cost.iteration(&iteration(1, 1_000_000, Kind::Train), Pairing::Alone);
        assert_eq!(cost.calls(&costs, 6_000), Some(0.002));
    }
}
