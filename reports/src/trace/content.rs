//! What is exported of a timeline: which slices stand on which tracks. Both formats take it from here.

use super::counts::Counts;
use super::flows::{End, Pair, pair};
use super::slices::{Fit, Item, Track};
use crate::gpu::parts;
use crate::window::Window;
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, Kind, LaneId, OpenSpan, Span};
use std::collections::BTreeMap;

/// Something on a lane's track: an index into the timeline's list.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Iteration(usize),
    /// With its depth.
    Span(usize, u8),
    Open(usize),
    /// An end of a hand-off.
    End(usize),
}

/// A timeline, and the part of it that is exported.
pub(super) struct Content<'a> {
    pub timeline: &'a Timeline,
    pub window: &'a Window,
}

/// One rank's part.
pub(super) struct RankContent {
    pub rank: u32,
    pub lanes: Vec<LaneId>,
    /// Names of devices, in the order in which they came.
    pub devices: Vec<String>,
    pub ends: Vec<End>,
    pub pairs: Vec<Pair>,
}

impl<'a> Content<'a> {
    /// The ranks that the window looks at, in order.
    pub(super) fn ranks(&self, counts: &mut Counts) -> Vec<RankContent> {
        let mut ranks: BTreeMap<u32, Vec<LaneId>> = BTreeMap::new();
        for (at, lane) in self.timeline.lanes.iter().enumerate() {
            let id = LaneId(at as u32);
            if self.window.has_lane(self.timeline, id) {
                ranks.entry(lane.rank).or_default().push(id);
            }
        }
        for counter in self.timeline.counters.iter().filter(|counter| self.window.has_rank(counter.rank)) {
            ranks.entry(counter.rank).or_default();
        }
        ranks.into_iter().map(|(rank, lanes)| self.rank(rank, lanes, counts)).collect()
    }

    fn rank(&self, rank: u32, lanes: Vec<LaneId>, counts: &mut Counts) -> RankContent {
        let mut devices: Vec<String> = Vec::new();
        let mut add = |device: &str| {
            if !devices.iter().any(|known| known == device) {
                devices.push(device.to_owned());
            }
        };
        let with_times = lanes.iter().filter(|lane| self.spans(**lane).iter().any(|span| span.device.is_some()));
        with_times.filter_map(|lane| self.timeline.lane(*lane)).for_each(|lane| add(&lane.device));
        let counters = self.timeline.counters.iter().filter(|counter| counter.rank == rank);
        counters.filter_map(|counter| parts(&counter.name)).for_each(|(device, _)| add(device));
        devices.sort();
        let inside = |lane: LaneId| lanes.contains(&lane);
        let flows = self.timeline.flows.iter().filter(|flow| inside(flow.lane) && self.window.has_time(flow.time_ns));
        let (ends, pairs) = pair(flows.copied(), counts);
        RankContent { rank, lanes, devices, ends, pairs }
    }

    /// What a lane did, in the order of time.
    pub(super) fn lane(&self, lane: LaneId, rank: &RankContent, counts: &mut Counts) -> Track<What> {
        let mut items = Vec::new();
        let mut add = |begin_ns, duration_ns, what, counts: &mut Counts| {
            items.extend(Item::new(begin_ns, duration_ns, what, counts).filter(|item| self.meets(item)));
        };
        for (at, iteration) in self.iterations(lane) {
            add(iteration.begin_ns, iteration.duration_ns, What::Iteration(at), counts);
        }
        let first = self.first_span(lane);
        for (at, span) in self.spans(lane).iter().enumerate() {
            add(span.begin_ns, span.duration_ns, What::Span(first + at, span.depth), counts);
        }
        let end_ns = self.end_ns();
        for (at, open) in self.timeline.open.iter().enumerate().filter(|(_, open)| open.lane == lane) {
            if let Ok(duration) = u64::try_from(end_ns.saturating_sub(open.begin_ns)) {
                add(open.begin_ns, duration, What::Open(at), counts);
            }
        }
        for (at, end) in rank.ends.iter().enumerate().filter(|(_, end)| end.flow.lane == lane) {
            add(end.flow.time_ns, 0, What::End(at), counts);
        }
        let order = |what: &What| match what {
            What::Iteration(_) => 0,
            What::Open(_) => 1,
            What::Span(_, depth) => depth.saturating_add(2),
            What::End(_) => u8::MAX,
        };
        Track::new(items, Fit::Nested, order, |what| matches!(what, What::End(_)))
    }

    /// What a lane's spans did on its device: indices of spans.
    pub(super) fn device(&self, lane: LaneId, counts: &mut Counts) -> Track<usize> {
        let first = self.first_span(lane);
        let spans = self.spans(lane).iter().enumerate();
        let items = spans.filter_map(|(at, span)| {
            let device = span.device?;
            Item::new(device.begin_ns, device.duration_ns, first + at, counts).filter(|item| self.meets(item))
        });
        Track::new(items.collect(), Fit::Nested, |_| 0, |_| false)
    }

    /// Items on their way between two lanes, by these: indices of their puts.
    pub(super) fn hand_offs(&self, rank: &RankContent, counts: &mut Counts) -> Vec<((LaneId, LaneId), Track<usize>)> {
        let mut by_lanes: BTreeMap<(LaneId, LaneId), Vec<Item<usize>>> = BTreeMap::new();
        for (from, to) in &rank.pairs {
            let (put, take) = (&rank.ends[*from].flow, &rank.ends[*to].flow);
            let duration = take.time_ns.abs_diff(put.time_ns);
            let item = Item::new(put.time_ns, duration, *from, counts);
            by_lanes.entry((put.lane, take.lane)).or_default().extend(item);
        }
        let track = |items| Track::new(items, Fit::Apart, |_| 0, |_| false);
        by_lanes.into_iter().map(|(lanes, items)| (lanes, track(items))).collect()
    }

    /// The last moment of what was recorded.
    pub(super) fn end_ns(&self) -> i64 {
        let spans = self.timeline.extent().map(|(_, end)| end);
        let samples = self.timeline.samples.last().map(|sample| sample.time_ns);
        let marks = self.timeline.marks.last().map(|mark| mark.time_ns);
        let end = spans.into_iter().chain(samples).chain(marks).max().unwrap_or(0).max(0);
        self.window.to_ns.map_or(end, |to| end.min(to.max(0)))
    }

    pub(super) fn span(&self, at: usize) -> Option<&'a Span> {
        self.timeline.spans.get(at)
    }

    pub(super) fn iteration(&self, at: usize) -> Option<&'a Iteration> {
        self.timeline.iterations.get(at)
    }

    pub(super) fn open(&self, at: usize) -> Option<&'a OpenSpan> {
        self.timeline.open.get(at)
    }

    fn first_span(&self, lane: LaneId) -> usize {
        self.timeline.spans.partition_point(|span| span.lane < lane)
    }

    fn spans(&self, lane: LaneId) -> &'a [Span] {
        let (first, end) = (self.first_span(lane), self.timeline.spans.partition_point(|span| span.lane <= lane));
        self.timeline.spans.get(first..end).unwrap_or_default()
    }

    fn iterations(&self, lane: LaneId) -> impl Iterator<Item = (usize, &'a Iteration)> {
        let iterations = &self.timeline.iterations;
        let first = iterations.partition_point(|iteration| iteration.lane < lane);
        let end = iterations.partition_point(|iteration| iteration.lane <= lane);
        iterations.iter().enumerate().take(end).skip(first)
    }

    /// A slice of which a part lies in the window is exported whole.
    fn meets<T>(&self, item: &Item<T>) -> bool {
        self.window.from_ns.is_none_or(|from| item.end_ns >= from)
            && self.window.to_ns.is_none_or(|to| item.begin_ns < to)
    }
}

/// What an iteration is called.
pub(super) fn iteration_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Train => "iteration",
        Kind::Warmup => "iteration [warmup]",
        Kind::Checkpoint => "iteration [checkpoint]",
        Kind::Eval => "iteration [eval]",
        Kind::Bare => "iteration [bare]",
        Kind::Drain => "iteration [drain]",
    }
}

/// `cuda:0` as people know it.
pub(super) fn device_name(device: &str) -> String {
    device.strip_prefix("cuda:").map_or_else(|| device.to_owned(), |number| format!("GPU {number}"))
}
