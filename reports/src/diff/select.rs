//! Which part of each run is compared.

use super::gather::{Gathered, Total};
use crate::window::{Moment, Selection};

/// Which part of each run is compared. Everything by default. An iteration belongs to a stretch of time if it ends in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Select {
    /// Only these lanes; all when empty.
    pub lanes: Vec<String>,
    /// Only these processes of a multi-process run; all when empty.
    pub ranks: Vec<u32>,
    /// Only from this moment on.
    pub from: Option<At>,
    /// Only before this moment.
    pub to: Option<At>,
    /// Only this long before the end of the run's last iteration, nanoseconds.
    pub last_ns: Option<u64>,
}

/// A moment of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// Nanoseconds since the begin of the run's first iteration.
    SinceStart(u64),
    /// Nanoseconds since 1970.
    Date(i64),
}

impl From<Selection> for Select {
    /// Times since the start count from the begin of each run's first iteration, and the end is that of its last one.
    fn from(selection: Selection) -> Self {
        let Selection { last, window, lanes, ranks } = selection;
        let at = |moment: Moment| match moment {
            Moment::SinceStart(ns) => At::SinceStart(ns),
            Moment::Date(ns) => At::Date(ns),
        };
        let (from, to) = window.map_or((None, None), |range| (range.from, range.to));
        Self { lanes, ranks, from: from.map(at), to: to.map(at), last_ns: last.map(|length| length.0) }
    }
}

impl Select {
    pub(super) fn has(&self, rank: u32, lane: &str) -> bool {
        (self.ranks.is_empty() || self.ranks.contains(&rank))
            && (self.lanes.is_empty() || self.lanes.iter().any(|l| l == lane))
    }

    /// What is wrong with a file of which nothing was taken.
    pub(super) fn lacks(&self, nothing: &'static str) -> &'static str {
        if *self == Self::default() {
            nothing
        } else {
            "it holds nothing of the lanes, rank and time that were asked for"
        }
    }

    /// Whether only a stretch of time is asked for.
    pub(super) fn cuts_time(&self) -> bool {
        self.from.is_some() || self.to.is_some() || self.last_ns.is_some()
    }

    /// First and last end of an iteration, nanoseconds since 1970.
    pub(super) fn window(&self, gathered: &Gathered) -> (i64, i64) {
        let totals = || gathered.starts.iter().flat_map(|start| &start.totals);
        let first = totals().map(|total| total.begin_ns).min().unwrap_or(0);
        let last = totals().map(Total::end_ns).max().unwrap_or(0);
        let place = |at: At| match at {
            At::SinceStart(ns) => first.saturating_add_unsigned(ns),
            At::Date(ns) => ns,
        };
        let from = self.from.map_or(i64::MIN, place);
        let recent = self.last_ns.map_or(i64::MIN, |ns| last.saturating_sub_unsigned(ns));
        (from.max(recent), self.to.map_or(i64::MAX, place))
    }
}
