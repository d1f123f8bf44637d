//! Names, lanes, counters and streams of several runs by one number each, whatever numbers their streams give them.

use super::Place;
use crate::intern::Places;
use crate::passes::{Take, settled};
use dflash_timeline::record::{
    Anchor, Counter, CounterId, DeviceTime, Flow, Iteration, Lane, LaneId, Mark, NameId, Sample, Span, StackSample,
    Stream, StreamId,
};
use dflash_timeline::{Health, Timeline};
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};

/// What all runs have in common.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// Names, lanes, counters, streams, and what the streams say of themselves; no records.
    pub timeline: Timeline,
    names: Places,
    lanes: Places,
    counters: Places,
    streams: Places,
}

/// The place of a text, which is added to the list if it is new.
fn place_of<T: Clone + Eq + Hash>(places: &mut Places, all: &mut Vec<T>, text: &T) -> u32 {
    places.find(text, |at| all.get(at as usize) == Some(text)).unwrap_or_else(|| {
        let at = u32::try_from(all.len()).unwrap_or(u32::MAX);
        all.push(text.clone());
        places.note(text, at);
        at
    })
}

impl Texts {
    /// Keeps what the streams say of themselves.
    pub(super) fn keep(&mut self, books: Timeline) {
        let own = &mut self.timeline;
        let (names, lanes) = (std::mem::take(&mut own.names), std::mem::take(&mut own.lanes));
        let (counters, streams) = (std::mem::take(&mut own.counters), std::mem::take(&mut own.streams));
        *own = Timeline { names, lanes, counters, streams, ..books };
    }
}

/// Takes a run's records to the place of all.
pub(super) struct Moving<'a, T> {
    texts: &'a Mutex<Texts>,
    place: &'a Place,
    names: Vec<NameId>,
    lanes: Vec<LaneId>,
    counters: Vec<CounterId>,
    streams: Vec<StreamId>,
    /// On the run's own clock.
    anchors: Vec<Anchor>,
    take: &'a mut T,
}

impl<'a, T: Take> Moving<'a, T> {
    pub(super) fn new(texts: &'a Mutex<Texts>, place: &'a Place, take: &'a mut T) -> Self {
        let (names, lanes, counters) = (Vec::new(), Vec::new(), Vec::new());
        Self { texts, place, names, lanes, counters, streams: Vec::new(), anchors: Vec::new(), take }
    }

    /// Adds what the run's stream says of itself.
    pub(super) fn account(&mut self, new: Timeline, books: &mut Timeline) {
        if books.anchors.is_empty() && self.place.shift_ns == 0 {
            books.anchors = settled(std::mem::take(&mut self.anchors));
        }
        let first = books.health == Health::default() && books.lane_totals.is_empty();
        books.open.extend(new.open.into_iter().map(|mut open| {
            (open.name, open.lane, open.begin_ns) =
                (self.name(open.name), self.lane(open.lane), self.time(open.begin_ns));
            open
        }));
        books.lane_totals.extend(new.lane_totals.into_iter().map(|mut totals| {
            totals.lane = self.lane(totals.lane);
            totals
        }));
        books.totals = books.totals.plus(&new.totals);
        books.expired = books.expired.plus(&new.expired);
        books.detail_from_ns = books.detail_from_ns.max(new.detail_from_ns.map(|ns| self.time(ns)));
        add_health(&mut books.health, new.health, first);
    }

    /// Ids of a damaged file that mean nothing go on meaning nothing.
    #[inline]
    fn name(&self, NameId(id): NameId) -> NameId {
        self.names.get(id as usize).copied().unwrap_or(NameId(u32::MAX))
    }

    #[inline]
    fn lane(&self, LaneId(id): LaneId) -> LaneId {
        self.lanes.get(id as usize).copied().unwrap_or(LaneId(u32::MAX))
    }

    #[inline]
    fn stream(&self, StreamId(id): StreamId) -> StreamId {
        self.streams.get(id as usize).copied().unwrap_or(StreamId(u32::MAX))
    }

    #[inline]
    fn time(&self, ns: i64) -> i64 {
        ns.saturating_add(self.place.shift_ns)
    }
}

/// Together they are whole if all are.
fn add_health(sum: &mut Health, new: Health, first: bool) {
    sum.ended = new.ended && (first || sum.ended);
    sum.bad_blocks += new.bad_blocks;
    sum.skipped_bytes += new.skipped_bytes;
    sum.problems.extend(new.problems);
}

impl<T: Take> Take for Moving<'_, T> {
    fn texts(&mut self, timeline: &Timeline) {
        let mut texts = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        let Texts { timeline: all, names, lanes, counters, streams } = &mut *texts;
        let rank = |rank: u32| rank.saturating_add(self.place.first_rank);
        let new = &timeline.names[self.names.len().min(timeline.names.len())..];
        self.names.extend(new.iter().map(|name| NameId(place_of(names, &mut all.names, name))));
        let new = &timeline.lanes[self.lanes.len().min(timeline.lanes.len())..];
        let moved = new.iter().map(|lane| Lane { rank: rank(lane.rank), ..lane.clone() });
        self.lanes.extend(moved.map(|lane| LaneId(place_of(lanes, &mut all.lanes, &lane))));
        let new = &timeline.counters[self.counters.len().min(timeline.counters.len())..];
        let moved = new.iter().map(|counter| Counter { rank: rank(counter.rank), ..counter.clone() });
        self.counters.extend(moved.map(|counter| CounterId(place_of(counters, &mut all.counters, &counter))));
        let new = &timeline.streams[self.streams.len().min(timeline.streams.len())..];
        let moved = new.iter().map(|stream| Stream { rank: rank(stream.rank), ..stream.clone() });
        self.streams.extend(moved.map(|stream| StreamId(place_of(streams, &mut all.streams, &stream))));
        self.take.texts(all);
    }

    fn wants(&self, lane: LaneId) -> bool {
        self.take.wants(self.lane(lane))
    }

    // Inlined down to where it is kept, a span stays in registers. Written and read again at once it waits for itself: with
    // other widths the processor cannot hand on what it has not stored yet. That took longer than decoding.
    #[inline(always)]
    fn span(&mut self, span: &Span) {
        let Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device } = *span;
        let (name, lane, begin_ns) = (self.name(name), self.lane(lane), self.time(begin_ns));
        let device = device.map(|device| DeviceTime {
            begin_ns: self.time(device.begin_ns),
            stream: device.stream.map(|stream| self.stream(stream)),
            ..device
        });
        self.take.span(&Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device });
    }

    fn iteration(&mut self, iteration: &Iteration) {
        let mut iteration = *iteration;
        (iteration.lane, iteration.begin_ns) = (self.lane(iteration.lane), self.time(iteration.begin_ns));
        self.take.iteration(&iteration);
    }

    #[inline]
    fn sample(&mut self, sample: &Sample) {
        let mut sample = *sample;
        let CounterId(id) = sample.counter;
        sample.counter = self.counters.get(id as usize).copied().unwrap_or(CounterId(u32::MAX));
        sample.time_ns = self.time(sample.time_ns);
        self.take.sample(&sample);
    }

    fn flow(&mut self, flow: &Flow) {
        let mut flow = *flow;
        (flow.lane, flow.time_ns) = (self.lane(flow.lane), self.time(flow.time_ns));
        self.take.flow(&flow);
    }

    fn mark(&mut self, mark: &Mark) {
        self.take.mark(&Mark { time_ns: self.time(mark.time_ns), ..mark.clone() });
    }

    fn anchor(&mut self, anchor: &Anchor) {
        self.anchors.push(*anchor);
    }

    fn stack(&mut self, stack: &StackSample) {
        let moved = |names: &[NameId]| names.iter().map(|&name| self.name(name)).collect();
        let (spans, frames) = (moved(&stack.spans), moved(&stack.frames));
        let (time_ns, thread) = (self.time(stack.time_ns), self.name(stack.thread));
        let lane = stack.lane.map(|lane| self.lane(lane));
        self.take.stack(&StackSample { time_ns, thread, lane, spans, frames, ..*stack });
    }
}
