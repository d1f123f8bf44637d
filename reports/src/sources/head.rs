//! What must be known of a run before it is read: its clock, its ranks, and which part of it lies in a window. Blocks of
//! other times are passed by, so that little of a long run is read.

use super::Place;
use crate::error::Result;
use crate::passes::settled;
use crate::walk::{Window, end_ns};
use crate::window::Clock;
use dflash_timeline::record::{Anchor, Flow, FlowEnd, Iteration, Sample, Span};
use dflash_timeline::{ReadOptions, RunDir, Tail, Timeline, Visit};

/// What lies before a window is read for so long, nanoseconds: an item that is taken in it may have been put before.
const LOOK_BACK_NS: u64 = 30_000_000_000;
/// A queue's capacity is said within this time after the begin.
const BEGINNING_NS: u64 = 600_000_000_000;
/// How far to look for the first record, at first.
const NEAR_NS: u64 = 10_000_000_000;

/// A run before it is read.
#[derive(Debug, Default)]
pub(super) struct Head {
    /// Its lanes, counters and clock anchors, as far as the ends of its segments tell.
    pub books: Timeline,
    reach: Reach,
}

/// First and last of what was seen.
#[derive(Clone, Debug, Default)]
struct Reach {
    /// Of spans and iterations.
    extent: Option<(i64, i64)>,
    last_sample_ns: Option<i64>,
    anchors: Vec<Anchor>,
}

impl Head {
    /// What places a timeline that was read already.
    pub(super) fn of(timeline: &Timeline) -> Self {
        let Timeline { lanes, counters, anchors, .. } = timeline;
        let (lanes, counters, anchors) = (lanes.clone(), counters.clone(), anchors.clone());
        Self { books: Timeline { lanes, counters, anchors, ..Timeline::default() }, reach: Reach::default() }
    }

    /// Reads it; where the recording begins and ends only if that is asked for.
    pub(super) fn read(run: &RunDir, timed: bool) -> Result<Self> {
        let nothing = ReadOptions { from_ns: Some(i64::MAX), to_ns: Some(i64::MAX) };
        let mut dating = Reach::default();
        let mut books = dflash_timeline::visit(run, &nothing, &mut dating)?;
        books.anchors = settled(dating.anchors);
        let reach = if timed { Reach::of(run, books.anchors.first())? } else { Reach::default() };
        Ok(Self { books, reach })
    }
}

impl Reach {
    fn of(run: &RunDir, anchor: Option<&Anchor>) -> Result<Self> {
        let mut near = NEAR_NS;
        let mut first = Self::default();
        while let Some(to) = anchor.and_then(|anchor| anchor.monotonic_ns.checked_add_unsigned(near)) {
            first = Self::between(run, None, Some(to))?;
            if first.extent.is_some() || near > 1 << 60 {
                break;
            }
            near = near.saturating_mul(64);
        }
        let mut tail = Tail::open(run)?;
        tail.poll()?;
        let clock = Clock::of(tail.timeline());
        let last = match (clock.extent, first.extent) {
            (Some((_, end)), Some(_)) => Self::between(run, Some(end), None)?,
            // Without an anchor, or where nothing is near it, all is looked at.
            _ => Self::between(run, None, None)?,
        };
        let begin = first.extent.or(last.extent).map(|(begin, _)| begin);
        let end = last.extent.or(first.extent).map(|(_, end)| end);
        let last_sample_ns = last.last_sample_ns.max(first.last_sample_ns);
        Ok(Self { extent: begin.zip(end), last_sample_ns, ..Self::default() })
    }

    fn between(run: &RunDir, from_ns: Option<i64>, to_ns: Option<i64>) -> Result<Self> {
        let mut reach = Self::default();
        dflash_timeline::visit(run, &ReadOptions { from_ns, to_ns }, &mut reach)?;
        Ok(reach)
    }

    #[inline]
    fn add(&mut self, begin_ns: i64, end_ns: i64) {
        self.extent = Some(self.extent.map_or((begin_ns, end_ns), |(a, b)| (a.min(begin_ns), b.max(end_ns))));
    }
}

impl Visit for Reach {
    #[inline]
    fn span(&mut self, span: Span) {
        self.add(span.begin_ns, span.begin_ns.saturating_add_unsigned(span.duration_ns));
    }

    fn iteration(&mut self, iteration: Iteration) {
        self.add(iteration.begin_ns, end_ns(&iteration));
    }

    fn anchor(&mut self, anchor: Anchor) {
        self.anchors.push(anchor);
    }

    fn sample(&mut self, sample: Sample) {
        self.last_sample_ns = self.last_sample_ns.max(Some(sample.time_ns));
    }
}

/// The clock of all runs together: the first one's.
pub(super) fn clock(heads: &[Head], places: &[Place]) -> Clock {
    let mut clock = Clock::default();
    for (Head { books, reach }, place) in heads.iter().zip(places) {
        let moved = |ns: i64| ns.saturating_add(place.shift_ns);
        let anchor = books.anchors.first().map(|anchor| anchor.monotonic_ns);
        let begin = anchor.into_iter().chain(reach.extent.map(|(begin, _)| begin)).min();
        let end = reach.extent.map(|(_, end)| end).max(reach.last_sample_ns).or(begin);
        clock.extent = match (clock.extent, begin.map(moved).zip(end.map(moved))) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (known, new) => known.or(new),
        };
        if clock.anchors.is_empty() {
            let moved = books.anchors.iter().map(|a| Anchor { monotonic_ns: moved(a.monotonic_ns), ..*a });
            clock.anchors = moved.collect();
        }
    }
    clock
}

/// When the first record of a run's lanes began, on the clock of all.
pub(super) fn first_ns((head, place): (&Head, &Place)) -> Option<i64> {
    head.reach.extent.map(|(begin, _)| begin.saturating_add(place.shift_ns))
}

/// What is to be read for a window on the run's own clock: the iterations that end in it, from their begin on, and what was
/// put before and taken in it.
pub(super) fn options(run: &RunDir, window: &Window) -> Result<ReadOptions> {
    let mut options = ReadOptions { from_ns: window.from_ns, to_ns: window.to_ns };
    if let Some(from) = window.from_ns {
        let mut early = Early { window, begin_ns: from, taken: false };
        dflash_timeline::visit(run, &options, &mut early)?;
        let back = from.saturating_sub_unsigned(if early.taken { LOOK_BACK_NS } else { 0 });
        options.from_ns = Some(back.min(early.begin_ns));
    }
    Ok(options)
}

/// The begin of the recording, of what is read.
pub(super) fn beginning(options: &ReadOptions, begin_ns: Option<i64>) -> ReadOptions {
    let to_ns = begin_ns.map(|begin| begin.saturating_add_unsigned(BEGINNING_NS)).or(options.to_ns);
    ReadOptions { from_ns: None, to_ns }
}

/// The earliest begin of an iteration that ends in a window.
struct Early<'a> {
    window: &'a Window,
    begin_ns: i64,
    /// Whether something was taken.
    taken: bool,
}

impl Visit for Early<'_> {
    fn iteration(&mut self, iteration: Iteration) {
        if self.window.has_time(end_ns(&iteration)) {
            self.begin_ns = self.begin_ns.min(iteration.begin_ns);
        }
    }

    fn flow(&mut self, flow: Flow) {
        self.taken |= flow.end == FlowEnd::Take;
    }
}
