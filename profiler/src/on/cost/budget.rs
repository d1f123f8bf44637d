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
