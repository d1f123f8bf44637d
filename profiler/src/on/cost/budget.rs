//! The limit on what instrumentation may cost.

use super::super::feed::Feed;
use super::super::level;
use super::super::output::Output;
use super::pairs::LaneCost;
use crate::Level;

/// The budget is looked at after every window of a run that may take weeks, on every lane: so its interval misses once in
/// a hundred thousand looks, not once in twenty.
const TAIL: f64 = 5e-6;

/// Lowers the level where instrumentation certainly costs more than it may. It never raises it, and what somebody raises
/// again stays raised: so it cannot go to and fro.
#[derive(Debug)]
pub(crate) struct Budget {
    max_overhead: f64,
    /// The highest level that it may still lower.
    below: Level,
    /// The level that the pairs were measured at.
    measured: Level,
}

impl Budget {
    pub(crate) fn new(max_overhead: f64) -> Self {
        Self { max_overhead, below: Level::Layers, measured: level::level() }
    }

    /// Looks at every lane that has new pairs.
    pub(crate) fn watch(&mut self, feeds: &mut [Feed], out: &mut Output) {
        let mut forget = self.level_changed();
        for feed in &mut *feeds {
            if !forget
                && feed.cost.take_fresh()
                && let Some(text) = self.check(&feed.shared.name, &mut feed.cost)
            {
                out.warn(text);
                forget = true;
            }
        }
        if forget {
            feeds.iter_mut().for_each(|feed| feed.cost.forget());
        }
    }

    /// Whether the level has changed since the last call: pairs from before then say nothing.
    fn level_changed(&mut self) -> bool {
        let level = level::level();
        std::mem::replace(&mut self.measured, level) != level
    }

    /// Looks at a lane with new pairs. If it costs too much, lowers the level, and returns what to say.
    fn check(&mut self, lane: &str, cost: &mut LaneCost) -> Option<String> {
        let (low, _) = cost.certain(TAIL)?;
        let next = lower(self.measured)?;
        if low <= self.max_overhead || self.measured > self.below {
            return None;
        }
        let (low, high) = cost.interval()?;
        self.below = next;
        self.measured = next;
        level::set_level(next);
        Some(format!(
            "lane {lane}: instrumentation costs {:.2} to {:.2} % of an iteration, more than the {:.2} % of max_overhead; \
             the level is now `{}`, and stays until somebody raises it",
            low * 100.0,
            high * 100.0,
            self.max_overhead * 100.0,
            format!("{next:?}").to_lowercase(),
        ))
    }
}

fn lower(level: Level) -> Option<Level> {
    match level {
        Level::Off => None,
        Level::Stages => Some(Level::Off),
        Level::Layers => Some(Level::Stages),
    }
}

#[cfg(test)]
mod tests {
    use dflash_timeline::record::{Iteration, Kind, LaneId};

    use super::super::super::event::Pairing;
    use super::super::pairs::LaneCost;
    use super::{Budget, TAIL};
    use crate::Level;

    /// A lane with pairs whose instrumented iterations take so much longer than the bare ones, in percent.
    fn lane(percents: impl Iterator<Item = f64>) -> LaneCost {
        let mut cost = LaneCost::default();
        for (pair, percent) in (0..).zip(percents) {
            let iteration = |number, kind, ns: f64| Iteration {
                lane: LaneId(0),
                number,
                kind,
                begin_ns: 0,
                duration_ns: ns as u64,
                cpu_ns: None,
                tokens: None,
            };
            cost.iteration(&iteration(2 * pair, Kind::Bare, 1e9), Pairing::First { bare: true });
            let with = iteration(2 * pair + 1, Kind::Train, 1e9 * (1.0 + percent / 100.0));
            cost.iteration(&with, Pairing::Second { bare: false });
        }
        cost
    }

    /// What is said of a lane, at the level `layers` with half a percent allowed.
    fn said(percents: impl Iterator<Item = f64>) -> Option<String> {
        let mut budget = Budget { max_overhead: 0.005, below: Level::Layers, measured: Level::Layers };
        budget.check("drafter:0", &mut lane(percents))
    }

    #[test]
    fn the_level_falls_only_where_all_of_the_interval_lies_above() {
        let noise = |mean: f64, width: f64| (0..40).map(move |i| mean + width * (f64::from(i % 20) / 9.5 - 1.0));
        assert_eq!(said(noise(0.2, 0.1)), None, "below");
        assert_eq!(said(noise(0.7, 3.0)), None, "the mean lies above, and the interval reaches below");
        assert_eq!(said(noise(2.0, 0.5).take(6)), None, "six pairs are not sure enough");
        let (low, high) = lane(noise(2.0, 0.5)).certain(TAIL).expect("forty pairs are enough");
        assert!(0.005 < low && low < 0.02 && 0.02 < high);
        let text = said(noise(2.0, 0.5)).expect("it is lowered");
        assert!(text.contains("more than the 0.50 % of max_overhead; the level is now `stages`"), "{text}");
    }
}
