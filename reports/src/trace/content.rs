//! What is exported of a recording: which slices stand on which tracks. Both formats take it from here.

use super::counts::Counts;
use super::flows::{End, Pair, pair};
use super::slices::{Fit, Item, Track};
use super::source::{Piece, Source};
use super::streams::{self, StreamTrack};
use crate::gpu::parts;
use crate::window::Window;
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, Kind, LaneId, OpenSpan, Span};
use std::collections::{BTreeMap, VecDeque};

/// Something on a lane's track.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    Iteration(Iteration),
    Span(Span),
    Open(OpenSpan),
    /// An end of a hand-off: an index into the rank's.
    End(usize),
}

/// A recording, and the part of it that is exported.
pub(super) struct Content<'a> {
    pub source: &'a Source<'a>,
    /// What is known of the whole.
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

/// A track in the making: pieces add to it, a format takes from it.
pub(super) struct Laid<T> {
    pub lane: LaneId,
    pub track: Track<T>,
    /// Slots that the format has named.
    pub slots: usize,
    /// Ends of hand-offs that no piece had yet, in the order of time.
    ends: VecDeque<u32>,
}

/// The tracks of a rank's lanes, and of what they did on their devices.
pub(super) struct Tracks {
    pub lanes: Vec<Laid<What>>,
    pub streams: Vec<StreamTrack>,
}

impl<'a> Content<'a> {
    pub(super) fn new(source: &'a Source<'a>, window: &'a Window) -> Self {
        Self { source, timeline: source.head(), window }
    }

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
        streams::devices(self, &lanes).into_iter().for_each(&mut add);
        let counters = self.timeline.counters.iter().filter(|counter| counter.rank == rank);
        counters.filter_map(|counter| parts(&counter.name)).for_each(|(device, _)| add(device));
        devices.sort();
        let inside = |lane: LaneId| lanes.contains(&lane);
        let flows = self.timeline.flows.iter().filter(|flow| inside(flow.lane) && self.window.has_time(flow.time_ns));
        let (ends, pairs) = pair(flows.copied(), counts);
        RankContent { rank, lanes, devices, ends, pairs }
    }

    /// The rank's tracks, empty.
    pub(super) fn tracks(&self, rank: &RankContent) -> Tracks {
        let mut ends: BTreeMap<LaneId, Vec<u32>> = BTreeMap::new();
        for (at, end) in (0..).zip(&rank.ends) {
            ends.entry(end.flow.lane).or_default().push(at);
        }
        let order = |what: &What| match what {
            What::Iteration(_) => 0,
            What::Open(_) => 1,
            What::Span(span) => span.depth.saturating_add(2),
            What::End(_) => u8::MAX,
        };
        let lane = |&lane: &LaneId| {
            let mut ends = ends.remove(&lane).unwrap_or_default();
            ends.sort_by_key(|at| rank.ends[*at as usize].flow.time_ns);
            let track = Track::new(Fit::Nested, order, |what| matches!(what, What::End(_)));
            Laid { lane, track, slots: 0, ends: ends.into() }
        };
        let lanes = rank.lanes.iter().map(lane).collect();
        Tracks { lanes, streams: streams::tracks(self, rank) }
    }

    /// Adds what begins in a piece.
    pub(super) fn add(&self, piece: &Piece<'_>, rank: &RankContent, tracks: &mut Tracks, counts: &mut Counts) {
        for laid in &mut tracks.lanes {
            let items = self.lane(piece, laid.lane, &mut laid.ends, rank, counts);
            laid.track.add(items, piece.to_ns);
        }
        tracks.streams.iter_mut().for_each(|stream| stream.add(self, piece, counts));
    }

    /// What a lane begins in a piece.
    fn lane(
        &self,
        piece: &Piece<'_>,
        lane: LaneId,
        ends: &mut VecDeque<u32>,
        rank: &RankContent,
        counts: &mut Counts,
    ) -> Vec<Item<What>> {
        let mut items = Vec::new();
        let mut add = |begin_ns, duration_ns, what| {
            items.extend(Item::new(begin_ns, duration_ns, what, counts).filter(|item| self.meets(item)));
        };
        for iteration in iterations(piece.timeline, lane).iter().filter(|iteration| piece.begins(iteration.begin_ns)) {
            add(iteration.begin_ns, iteration.duration_ns, What::Iteration(*iteration));
        }
        let ended = spans(piece.timeline, lane);
        for span in ended.iter().filter(|span| piece.begins(span.begin_ns)) {
            add(span.begin_ns, span.duration_ns, What::Span(*span));
        }
        let end_ns = self.end_ns();
        // Of a run that goes on, what was open at the first look may have ended by now.
        let goes_on = |open: &&OpenSpan| {
            let same = |span: &&Span| span.begin_ns == open.begin_ns;
            let first = ended.partition_point(|span| span.begin_ns < open.begin_ns);
            !ended[first..].iter().take_while(same).any(|span| span.name == open.name)
        };
        let open = self.timeline.open.iter().filter(|open| open.lane == lane && piece.begins(open.begin_ns));
        for open in open.filter(goes_on) {
            // What has begun after all that has ended takes no time yet.
            let duration = u64::try_from(end_ns.saturating_sub(open.begin_ns)).unwrap_or(0);
            add(open.begin_ns, duration, What::Open(*open));
        }
        let here = |at: &mut u32| piece.to_ns.is_none_or(|to| rank.ends[*at as usize].flow.time_ns < to);
        while let Some(at) = ends.pop_front_if(here) {
            add(rank.ends[at as usize].flow.time_ns, 0, What::End(at as usize));
        }
        items
    }

    /// Items on their way between two lanes, by these: indices of their puts.
    pub(super) fn hand_offs(&self, rank: &RankContent, counts: &mut Counts) -> Vec<((LaneId, LaneId), Track<usize>)> {
        let mut by_lanes: BTreeMap<(LaneId, LaneId), Vec<Item<usize>>> = BTreeMap::new();
        for (from, to) in &rank.pairs {
            let (put, take) = (&rank.ends[*from as usize].flow, &rank.ends[*to as usize].flow);
            let duration = take.time_ns.abs_diff(put.time_ns);
            let item = Item::new(put.time_ns, duration, *from as usize, counts);
            by_lanes.entry((put.lane, take.lane)).or_default().extend(item);
        }
        let track = |items| {
            let mut track = Track::new(Fit::Apart, |_: &usize| 0, |_| false);
            track.add(items, None);
            track
        };
        by_lanes.into_iter().map(|(lanes, items)| (lanes, track(items))).collect()
    }

    /// The last moment of what was recorded.
    pub(super) fn end_ns(&self) -> i64 {
        let spans = self.source.reach.extent.map(|(_, end)| end);
        let marks = self.timeline.marks.last().map(|mark| mark.time_ns);
        let end = spans.into_iter().chain(self.source.reach.last_sample_ns).chain(marks).max().unwrap_or(0).max(0);
        self.window.to_ns.map_or(end, |to| end.min(to.max(0)))
    }

    /// A slice of which a part lies in the window is exported whole.
    pub(super) fn meets<T>(&self, item: &Item<T>) -> bool {
        self.window.from_ns.is_none_or(|from| item.end_ns >= from)
            && self.window.to_ns.is_none_or(|to| item.begin_ns < to)
    }
}

/// A lane's spans, which stand together.
pub(super) fn spans(timeline: &Timeline, lane: LaneId) -> &[Span] {
    let (first, end) = (
        timeline.spans.partition_point(|span| span.lane < lane),
        timeline.spans.partition_point(|span| span.lane <= lane),
    );
    timeline.spans.get(first..end).unwrap_or_default()
}

fn iterations(timeline: &Timeline, lane: LaneId) -> &[Iteration] {
    let first = timeline.iterations.partition_point(|iteration| iteration.lane < lane);
    let end = timeline.iterations.partition_point(|iteration| iteration.lane <= lane);
    timeline.iterations.get(first..end).unwrap_or_default()
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
