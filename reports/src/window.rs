//! Which part of a run is looked at: times, lanes, ranks. Every reading command takes its `--last`, `--window`, `--lane`
//! and `--rank` from here, so that they mean the same everywhere.
//!
//! An iteration belongs to a stretch of time if it *ends* in it; a reading of a counter if it was taken in it.

mod moment;

pub use self::moment::{Length, Moment, TimeRange};
use crate::error::{Error, Result};
use dflash_timeline::Timeline;
use dflash_timeline::record::{Anchor, Iteration, LaneId};
use serde::Serialize;

/// What part of a timeline to look at, on its clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Only iterations that end at or after this, monotonic nanoseconds.
    pub from_ns: Option<i64>,
    /// Only iterations that end before this, monotonic nanoseconds.
    pub to_ns: Option<i64>,
    /// Only these lanes; all when empty.
    pub lanes: Vec<String>,
    /// Only these ranks; all when empty.
    pub ranks: Vec<u32>,
}

/// What a user asks to see. [`Selection::resolve`] places it on a timeline's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only this long before the end of what was recorded.
    pub last: Option<Length>,
    /// Only this stretch of time.
    pub window: Option<TimeRange>,
    /// Only these lanes; all when empty.
    pub lanes: Vec<String>,
    /// Only these ranks; all when empty.
    pub ranks: Vec<u32>,
}

/// A window in words that do not depend on the clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Scope {
    /// Nanoseconds from the begin of the recording to the window's; `None`: all from there.
    pub from_ns: Option<i64>,
    /// Nanoseconds from the begin of the recording to the window's end; `None`: all up to its end.
    pub to_ns: Option<i64>,
    /// Only these lanes; all when empty.
    pub lanes: Vec<String>,
    /// Only these ranks; all when empty.
    pub ranks: Vec<u32>,
}

/// What a recording's clock says: its first and last moment, and how to tell the date.
#[derive(Clone, Debug, Default)]
pub(crate) struct Clock {
    /// Monotonic nanoseconds; `None` if nothing was recorded.
    pub extent: Option<(i64, i64)>,
    pub anchors: Vec<Anchor>,
}

impl Window {
    pub(crate) fn has(&self, timeline: &Timeline, iteration: &Iteration) -> bool {
        self.has_time(iteration.begin_ns.saturating_add_unsigned(iteration.duration_ns))
            && self.has_lane(timeline, iteration.lane)
    }

    /// Whether a moment lies in it.
    #[must_use]
    pub fn has_time(&self, ns: i64) -> bool {
        self.from_ns.is_none_or(|from| ns >= from) && self.to_ns.is_none_or(|to| ns < to)
    }

    /// Whether it looks at a rank.
    #[must_use]
    pub fn has_rank(&self, rank: u32) -> bool {
        self.ranks.is_empty() || self.ranks.contains(&rank)
    }

    /// Whether it looks at a lane.
    #[must_use]
    pub fn has_lane(&self, timeline: &Timeline, lane: LaneId) -> bool {
        timeline
            .lane(lane)
            .is_some_and(|lane| self.has_rank(lane.rank) && (self.lanes.is_empty() || self.lanes.contains(&lane.name)))
    }

    /// Refuses a lane or a rank that the timeline does not have, naming those it has.
    ///
    /// # Errors
    /// [`Error::NoSuchLane`] and [`Error::NoSuchRank`].
    pub fn check_lanes(&self, timeline: &Timeline) -> Result<()> {
        let lanes = || timeline.lanes.iter();
        if let Some(&rank) = self.ranks.iter().find(|rank| lanes().all(|lane| lane.rank != **rank)) {
            return Err(Error::NoSuchRank { rank, known: listed(lanes().map(|lane| lane.rank.to_string())) });
        }
        let unknown = self.lanes.iter().find(|name| lanes().all(|lane| lane.name != **name));
        let Some(lane) = unknown else { return Ok(()) };
        Err(Error::NoSuchLane { lane: lane.clone(), known: listed(lanes().map(|lane| lane.name.clone())) })
    }

    /// The same on a clock that shows `shift_ns` less.
    pub(crate) fn earlier(&self, shift_ns: i64) -> Self {
        let back = |ns: Option<i64>| ns.map(|ns| ns.saturating_sub(shift_ns));
        Self { from_ns: back(self.from_ns), to_ns: back(self.to_ns), ..self.clone() }
    }

    /// The window as a distance from the begin of a recording.
    pub(crate) fn scope(&self, begin_ns: Option<i64>) -> Scope {
        let since = |ns: Option<i64>| ns.zip(begin_ns).map(|(ns, begin)| ns.saturating_sub(begin));
        let (lanes, ranks) = (self.lanes.clone(), self.ranks.clone());
        Scope { from_ns: since(self.from_ns), to_ns: since(self.to_ns), lanes, ranks }
    }
}

/// Each once, in the order of their first mention.
fn listed(names: impl Iterator<Item = String>) -> String {
    let mut seen: Vec<String> = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    if seen.is_empty() { "none".into() } else { seen.join(", ") }
}

impl Selection {
    /// Places the selection on a timeline's clock.
    ///
    /// # Errors
    /// [`Error::NoSuchLane`] and [`Error::NoSuchRank`] if the timeline lacks what is asked for, [`Error::NoDate`] if a
    /// date is asked for and the timeline has no clock anchor.
    pub fn resolve(&self, timeline: &Timeline) -> Result<Window> {
        let window = self.place(&Clock::of(timeline))?;
        window.check_lanes(timeline)?;
        Ok(window)
    }

    /// The same, by the clock alone.
    pub(crate) fn place(&self, clock: &Clock) -> Result<Window> {
        let (mut from_ns, mut to_ns) = (None, None);
        if let (Some(last), Some((_, end))) = (self.last, clock.extent) {
            from_ns = Some(end.saturating_sub_unsigned(last.0));
        }
        if let Some(range) = &self.window {
            let place = |moment: Option<Moment>| moment.map(|moment| clock.place(moment)).transpose();
            (from_ns, to_ns) = (place(range.from)?, place(range.to)?);
        }
        Ok(Window { from_ns, to_ns, lanes: self.lanes.clone(), ranks: self.ranks.clone() })
    }
}

impl Clock {
    /// Looks at everything that has a time.
    pub(crate) fn of(timeline: &Timeline) -> Self {
        let extent = timeline.extent();
        // The first anchor is written when the recording begins, before any iteration ends.
        let begin = [extent.map(|(first, _)| first), timeline.anchors.first().map(|anchor| anchor.monotonic_ns)];
        let end = [extent.map(|(_, last)| last), timeline.samples.last().map(|sample| sample.time_ns)];
        let begin = begin.into_iter().flatten().min();
        let end = end.into_iter().flatten().max().or(begin);
        Self { extent: begin.zip(end), anchors: timeline.anchors.clone() }
    }

    fn place(&self, moment: Moment) -> Result<i64> {
        match moment {
            Moment::SinceStart(ns) => Ok(self.extent.map_or(0, |(begin, _)| begin).saturating_add_unsigned(ns)),
            Moment::Date(unix_ns) => {
                let nearest = self.anchors.iter().min_by_key(|anchor| anchor.realtime_ns.abs_diff(unix_ns));
                let anchor = nearest.ok_or(Error::NoDate)?;
                Ok(anchor.monotonic_ns.saturating_add(unix_ns.saturating_sub(anchor.realtime_ns)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Length, Selection, TimeRange, Window};
    use dflash_timeline::Timeline;
    use dflash_timeline::record::{Anchor, Iteration, Kind, Lane, LaneId};

    fn timeline() -> Timeline {
        let lane = |rank| Lane { name: "drafter:0".into(), device: "cpu".into(), rank };
        let second = 1_000_000_000;
        let iteration = |number: u64| Iteration {
            lane: LaneId(0),
            number,
            kind: Kind::Train,
            begin_ns: (100 + number as i64) * second,
            duration_ns: second as u64,
            cpu_ns: None,
            tokens: None,
        };
        Timeline {
            lanes: vec![lane(0), lane(3)],
            iterations: (0..60).map(iteration).collect(),
            anchors: vec![Anchor { monotonic_ns: 99 * second, realtime_ns: 1_800_000_000 * second }],
            ..Timeline::default()
        }
    }

    fn iterations(selection: &Selection) -> usize {
        let timeline = timeline();
        let window = selection.resolve(&timeline).unwrap();
        timeline.iterations.iter().filter(|iteration| window.has(&timeline, iteration)).count()
    }

    #[test]
    fn times_count_from_the_start_or_the_end_or_are_dates() {
        let range = |text: &str| Selection { window: Some(text.parse::<TimeRange>().unwrap()), ..Selection::default() };
        assert_eq!(iterations(&Selection::default()), 60);
        let last = Some("10s".parse::<Length>().unwrap());
        assert_eq!(
            iterations(&Selection { last, ..Selection::default() }),
            11,
            "those that end 0 to 10 s before the end"
        );
        assert_eq!(iterations(&range("..11s")), 9, "the recording begins a second before its first iteration");
        assert_eq!(iterations(&range("11s..21s")), 10);
        assert_eq!(iterations(&range("@1800000011..@1800000021")), 10);
        assert_eq!(iterations(&range("2027-01-15T08:00:11Z..21s")), 10, "a date and a time since the start");
    }

    #[test]
    fn what_the_run_lacks_is_refused() {
        let refuse = |selection: Selection| selection.resolve(&timeline()).unwrap_err().to_string();
        let rank = refuse(Selection { ranks: vec![1], ..Selection::default() });
        assert_eq!(rank, "there is no rank 1; the run has 0, 3");
        let lane = refuse(Selection { lanes: vec!["loader".into()], ..Selection::default() });
        assert_eq!(lane, "there is no lane `loader`; the run has drafter:0");
        let bare = Timeline { anchors: Vec::new(), ..timeline() };
        let date = Selection { window: Some("2026-11-30T12:00:00Z..".parse().unwrap()), ..Selection::default() };
        assert!(date.resolve(&bare).unwrap_err().to_string().contains("time since the run's start"));
    }

    #[test]
    fn a_rank_is_a_filter() {
        let window = Window { ranks: vec![3], ..Window::default() };
        assert!(!window.has_lane(&timeline(), LaneId(0)));
        assert!(window.has_lane(&timeline(), LaneId(1)));
    }
}
