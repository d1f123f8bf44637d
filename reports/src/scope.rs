//! Which records of a stream are looked at.

use crate::walk::{Window, end_ns};
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, LaneId};

/// A window, with its lanes by number as they become known.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scope {
    window: Window,
    lanes: Vec<bool>,
}

impl Scope {
    pub(crate) fn new(window: &Window) -> Self {
        Self { window: window.clone(), lanes: Vec::new() }
    }

    /// Takes note of new lanes.
    pub(crate) fn texts(&mut self, timeline: &Timeline) {
        let new = self.lanes.len()..timeline.lanes.len();
        self.lanes.extend(new.map(|lane| self.window.has_lane(timeline, LaneId(lane as u32))));
    }

    #[inline]
    pub(crate) fn has_lane(&self, lane: LaneId) -> bool {
        self.lanes.get(lane.0 as usize).copied().unwrap_or(false)
    }

    pub(crate) fn has_end(&self, iteration: &Iteration) -> bool {
        self.window.has_time(end_ns(iteration))
    }

    pub(crate) fn has_time(&self, ns: i64) -> bool {
        self.window.has_time(ns)
    }

    /// Whether an iteration ends in the window, on one of its lanes.
    pub(crate) fn has(&self, iteration: &Iteration) -> bool {
        self.has_lane(iteration.lane) && self.has_end(iteration)
    }

    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    /// Whether all lanes and ranks are looked at: then what belongs to no lane is, too.
    pub(crate) fn is_everyone(&self) -> bool {
        self.window.lanes.is_empty() && self.window.ranks.is_empty()
    }
}
