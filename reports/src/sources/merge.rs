//! Several timelines in memory as one, for who looks at them again and again. Records are moved, not copied, and stay in
//! order: the lanes of a later run come last.

use super::head::Head;
use super::{Place, place};
use dflash_timeline::record::{Counter, CounterId, Lane, LaneId, NameId, StackSample};
use dflash_timeline::{Health, RunDir, Timeline};
use std::collections::HashMap;
use std::hash::Hash;

/// Several runs' timelines as one on the first run's clock, and where each run stands.
#[must_use]
pub fn joined(runs: impl IntoIterator<Item = (RunDir, Timeline)>) -> (Timeline, Vec<Place>) {
    let (mut merged, mut first) = (Timeline::default(), None);
    let mut places: Vec<Place> = Vec::new();
    for (run, timeline) in runs {
        let head = Head::of(&timeline);
        let place = place(&run, &head, first.as_ref(), &places);
        if first.is_none() {
            (merged, first) = (timeline, Some(head));
        } else {
            add(&mut merged, timeline, &place);
        }
        places.push(place);
    }
    (merged, places)
}

/// Where a run's ids and times lie in the merged timeline.
struct Map {
    names: Vec<NameId>,
    lanes: Vec<LaneId>,
    counters: Vec<CounterId>,
    shift_ns: i64,
}

impl Map {
    fn of(merged: &mut Timeline, timeline: &mut Timeline, place: &Place) -> Self {
        let rank = |rank: u32| rank.saturating_add(place.first_rank);
        let lanes = std::mem::take(&mut timeline.lanes).into_iter().map(|l| Lane { rank: rank(l.rank), ..l });
        let counters = std::mem::take(&mut timeline.counters).into_iter();
        let counters = counters.map(|counter| Counter { rank: rank(counter.rank), ..counter });
        Self {
            names: ids(&mut merged.names, std::mem::take(&mut timeline.names), NameId),
            lanes: ids(&mut merged.lanes, lanes.collect(), LaneId),
            counters: ids(&mut merged.counters, counters.collect(), CounterId),
            shift_ns: place.shift_ns,
        }
    }

    /// Ids of a damaged file that mean nothing go on meaning nothing.
    fn name(&self, NameId(id): NameId) -> NameId {
        self.names.get(id as usize).copied().unwrap_or(NameId(u32::MAX))
    }

    fn lane(&self, LaneId(id): LaneId) -> LaneId {
        self.lanes.get(id as usize).copied().unwrap_or(LaneId(u32::MAX))
    }

    fn time(&self, ns: i64) -> i64 {
        ns.saturating_add(self.shift_ns)
    }
}

/// Places of texts in a list that grows by those that are new.
fn ids<T: Clone + Eq + Hash, I>(all: &mut Vec<T>, texts: Vec<T>, id: fn(u32) -> I) -> Vec<I> {
    let mut known: HashMap<T, usize> = all.iter().cloned().zip(0..).collect();
    let place = |text: T| {
        let at = *known.entry(text).or_insert_with_key(|text| {
            all.push(text.clone());
            all.len() - 1
        });
        id(u32::try_from(at).unwrap_or(u32::MAX))
    };
    texts.into_iter().map(place).collect()
}

fn add(merged: &mut Timeline, mut new: Timeline, place: &Place) {
    let map = Map::of(merged, &mut new, place);
    merged.spans.extend(new.spans.into_iter().map(|mut span| {
        (span.name, span.lane, span.begin_ns) = (map.name(span.name), map.lane(span.lane), map.time(span.begin_ns));
        if let Some(device) = &mut span.device {
            device.begin_ns = map.time(device.begin_ns);
        }
        span
    }));
    merged.iterations.extend(new.iterations.into_iter().map(|mut iteration| {
        (iteration.lane, iteration.begin_ns) = (map.lane(iteration.lane), map.time(iteration.begin_ns));
        iteration
    }));
    merged.samples.extend(new.samples.into_iter().map(|mut sample| {
        let CounterId(id) = sample.counter;
        sample.counter = map.counters.get(id as usize).copied().unwrap_or(CounterId(u32::MAX));
        sample.time_ns = map.time(sample.time_ns);
        sample
    }));
    merged.flows.extend(new.flows.into_iter().map(|mut flow| {
        (flow.lane, flow.time_ns) = (map.lane(flow.lane), map.time(flow.time_ns));
        flow
    }));
    merged.marks.extend(new.marks.into_iter().map(|mut mark| {
        mark.time_ns = map.time(mark.time_ns);
        mark
    }));
    merged.stacks.extend(new.stacks.into_iter().map(|stack| move_stack(&map, stack)));
    merged.open.extend(new.open.into_iter().map(|mut open| {
        (open.name, open.lane, open.begin_ns) = (map.name(open.name), map.lane(open.lane), map.time(open.begin_ns));
        open
    }));
    merged.lane_totals.extend(new.lane_totals.into_iter().map(|mut totals| {
        totals.lane = map.lane(totals.lane);
        totals
    }));
    merged.totals = merged.totals.plus(&new.totals);
    add_health(&mut merged.health, new.health);
    merged.expired.records += new.expired.records;
    merged.expired.segments += new.expired.segments;
    merged.expired.bytes += new.expired.bytes;
    merged.detail_from_ns = merged.detail_from_ns.max(new.detail_from_ns.map(|ns| map.time(ns)));
    settle(merged);
}

/// Together they are whole if both are.
fn add_health(merged: &mut Health, new: Health) {
    merged.ended &= new.ended;
    merged.bad_blocks += new.bad_blocks;
    merged.skipped_bytes += new.skipped_bytes;
    merged.problems.extend(new.problems);
}

fn move_stack(map: &Map, mut stack: StackSample) -> StackSample {
    (stack.time_ns, stack.thread) = (map.time(stack.time_ns), map.name(stack.thread));
    stack.lane = stack.lane.map(|lane| map.lane(lane));
    for name in stack.spans.iter_mut().chain(&mut stack.frames) {
        *name = map.name(*name);
    }
    stack
}

/// Sorts as the reader does; what is two sorted runs is quickly sorted.
fn settle(merged: &mut Timeline) {
    merged.spans.sort_by_key(|s| (s.lane, s.begin_ns, s.depth));
    merged.iterations.sort_by_key(|i| (i.lane, i.begin_ns));
    merged.samples.sort_by_key(|s| s.time_ns);
    merged.flows.sort_by_key(|f| f.time_ns);
    merged.marks.sort_by_key(|m| m.time_ns);
    merged.stacks.sort_by_key(|s| s.time_ns);
}
