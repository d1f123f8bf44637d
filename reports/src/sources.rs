//! One or several run directories, seen as one: the ranks of a training that spans machines, or runs side by side.
//!
//! Each machine has a monotonic clock of its own. What it recorded is moved to the clock of the first run by the anchors
//! that say the date (the median of the offsets, so that one anchor in a clock step does no harm). Runs of one host share
//! a clock already. Ranks that occur twice get the next free numbers.

mod merge;

use crate::error::{Error, Result};
use crate::kernels::{self, Capture};
use crate::window::{Clock, Selection, Window};
use dflash_timeline::record::Anchor;
use dflash_timeline::{RunDir, Timeline};
use serde::Serialize;

/// Offsets of one host's clock that differ by less than this are noise of the date, nanoseconds.
const SAME_CLOCK_NS: u64 = 1_000_000_000;

/// A run that is part of what is looked at.
#[derive(Debug)]
pub struct Source {
    /// Its directory.
    pub run: RunDir,
    /// What was read of it, on its own clock and with its own ranks.
    pub timeline: Timeline,
    /// Where it stands among the others.
    pub place: Place,
}

/// Where a run stands among the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The directory's name.
    pub run: String,
    /// The machine.
    pub host: String,
    /// Its ranks by the numbers that the report gives them.
    pub ranks: Vec<u32>,
    /// Added to its ranks, so that no two runs share one.
    pub first_rank: u32,
    /// Added to its times, to place them on the first run's clock, nanoseconds.
    pub shift_ns: i64,
    /// Whether the clock could be told; if not, its times are as good as unrelated.
    pub aligned: bool,
}

/// Runs that were read, with what is asked for of them.
#[derive(Debug)]
pub struct Sources {
    /// In the order in which they were named; at least one.
    pub all: Vec<Source>,
    /// On the first one's clock.
    pub window: Window,
    /// When the recording began, monotonic nanoseconds of that clock; `None` if nothing was recorded.
    pub begin_ns: Option<i64>,
}

impl Sources {
    /// Reads the runs and places the selection on their clock.
    ///
    /// # Errors
    /// If a run cannot be read, or the selection asks for what they do not have.
    pub fn read(runs: &[RunDir], selection: &Selection) -> Result<Self> {
        let mut all: Vec<Source> = Vec::with_capacity(runs.len());
        for run in runs {
            let timeline = dflash_timeline::read(run)?;
            let place = place(run, &timeline, &all);
            all.push(Source { run: run.clone(), timeline, place });
        }
        let clock = clock(&all);
        let window = selection.place(&clock)?;
        Ok(Self { all, window, begin_ns: clock.extent.map(|(begin, _)| begin) })
    }

    /// The same of timelines that were read already; all of them is looked at.
    #[must_use]
    pub fn of(runs: impl IntoIterator<Item = (RunDir, Timeline)>) -> Self {
        let mut all: Vec<Source> = Vec::new();
        for (run, timeline) in runs {
            let place = place(&run, &timeline, &all);
            all.push(Source { run, timeline, place });
        }
        let begin_ns = clock(&all).extent.map(|(begin, _)| begin);
        Self { all, window: Window::default(), begin_ns }
    }

    /// The kernel captures of all runs.
    ///
    /// # Errors
    /// If one cannot be read.
    pub fn captures(&self) -> Result<Vec<Capture>> {
        let mut captures = Vec::new();
        for source in &self.all {
            let Place { first_rank, shift_ns, .. } = source.place;
            let ranks = self.window.ranks.iter().filter_map(|rank| rank.checked_sub(first_rank)).collect();
            let window = Window { ranks, ..self.window.earlier(shift_ns) };
            for mut capture in kernels::captures(&source.run, &source.timeline, &window)? {
                capture.lanes.iter_mut().for_each(|lane| lane.rank = lane.rank.saturating_add(first_rank));
                captures.push(capture);
            }
        }
        Ok(captures)
    }

    /// Makes one timeline of them, and hands back the window and where each run stands.
    ///
    /// # Errors
    /// If the window asks for a lane or a rank that they do not have.
    pub fn merge(self) -> Result<Merged> {
        let places = self.all.iter().map(|source| source.place.clone()).collect();
        let timeline = merge::merge(self.all);
        self.window.check_lanes(&timeline)?;
        Ok(Merged { timeline, window: self.window, begin_ns: self.begin_ns, places })
    }
}

/// Several runs on one clock.
#[derive(Debug)]
pub struct Merged {
    /// Everything that was recorded.
    pub timeline: Timeline,
    /// What is asked for of it.
    pub window: Window,
    /// When the recording began, monotonic nanoseconds.
    pub begin_ns: Option<i64>,
    /// Where each run stands.
    pub places: Vec<Place>,
}

impl Merged {
    /// The window by date, nanoseconds since 1970, as CSV files have it.
    ///
    /// # Errors
    /// [`Error::NoDate`] if the window has an end and the timeline has no clock anchor.
    pub fn dated(&self) -> Result<Window> {
        if self.window.from_ns.is_none() && self.window.to_ns.is_none() {
            return Ok(self.window.clone());
        }
        let anchor = self.timeline.anchors.first().ok_or(Error::NoDate)?;
        Ok(self.window.earlier(anchor.monotonic_ns.saturating_sub(anchor.realtime_ns)))
    }

    /// Iterations of every kind in the window.
    #[must_use]
    pub fn iterations(&self) -> u64 {
        self.timeline.iterations.iter().filter(|i| self.window.has(&self.timeline, i)).count() as u64
    }
}

fn place(run: &RunDir, timeline: &Timeline, before: &[Source]) -> Place {
    let host = run.manifest().map(|manifest| manifest.host).unwrap_or_default();
    let mut own: Vec<u32> = timeline.lanes.iter().map(|lane| lane.rank).collect();
    own.extend(timeline.counters.iter().map(|counter| counter.rank));
    own.sort_unstable();
    own.dedup();
    let taken = || before.iter().flat_map(|source| &source.place.ranks);
    let collides = taken().any(|rank| own.contains(rank));
    let first_rank = if collides { taken().max().map_or(0, |rank| rank.saturating_add(1)) } else { 0 };
    let (shift_ns, aligned) = before.first().map_or((0, true), |first| shift(first, &host, &timeline.anchors));
    let ranks = own.into_iter().map(|rank| rank.saturating_add(first_rank)).collect();
    Place { run: run.name(), host, ranks, first_rank, shift_ns, aligned }
}

/// What to add to times beside these anchors to place them on the clock of another run, and whether that is known.
fn shift(first: &Source, host: &str, anchors: &[Anchor]) -> (i64, bool) {
    let same_host = !host.is_empty() && first.place.host == host;
    match offset(anchors).zip(offset(&first.timeline.anchors)) {
        Some((own, base)) if same_host && own.abs_diff(base) < SAME_CLOCK_NS => (0, true),
        Some((own, base)) => (own.saturating_sub(base), true),
        None => (0, same_host),
    }
}

/// The median of what lies between the date and the monotonic clock.
fn offset(anchors: &[Anchor]) -> Option<i64> {
    let mut offsets: Vec<i64> =
        anchors.iter().map(|anchor| anchor.realtime_ns.saturating_sub(anchor.monotonic_ns)).collect();
    let middle = offsets.len() / 2;
    offsets.sort_unstable();
    offsets.get(middle).copied()
}

/// The clock of all runs together: the first one's.
fn clock(all: &[Source]) -> Clock {
    let mut clock = Clock::default();
    for Source { timeline, place, .. } in all {
        let own = Clock::of(timeline);
        let moved = |ns: i64| ns.saturating_add(place.shift_ns);
        let extent = own.extent.map(|(begin, end)| (moved(begin), moved(end)));
        clock.extent = match (clock.extent, extent) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (known, new) => known.or(new),
        };
        if clock.anchors.is_empty() {
            let moved = own.anchors.iter().map(|a| Anchor { monotonic_ns: moved(a.monotonic_ns), ..*a });
            clock.anchors = moved.collect();
        }
    }
    clock
}
