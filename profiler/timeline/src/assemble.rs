//! One timeline out of the blocks of all ranks and segments.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::path::Path;

use crate::decode::Block;
use crate::format::Header;
use crate::record::{
    Counter, CounterId, DeviceAnchor, Lane, LaneId, LaneTotals, NameId, OpenSpan, StackSample, Totals,
};
use crate::scan::Found;
use crate::timeline::Timeline;

/// Grows a timeline block by block.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    pub timeline: Timeline,
    names: HashMap<String, u32>,
    lanes: HashMap<Lane, u32>,
    counters: HashMap<Counter, u32>,
    ranks: BTreeMap<u32, Rank>,
    /// Last time of any block.
    pub newest_ns: Option<i64>,
}

/// Where a rank's stream stands.
#[derive(Debug, Default)]
struct Rank {
    /// Sequence number that the next block must have.
    next: Option<u32>,
    /// Damaged stretches since the last good block.
    damaged: u64,
    ended: bool,
    open: Vec<OpenSpan>,
    totals: Totals,
    /// Totals of earlier attempts.
    past: Totals,
    /// The same of each lane.
    lanes: BTreeMap<LaneId, LaneTotals>,
    past_lanes: BTreeMap<LaneId, LaneTotals>,
}

impl Assembler {
    /// Takes what a segment of `rank` held; `path` is for what is said about damage.
    pub(crate) fn add(&mut self, path: &Path, rank: u32, found: Found) {
        match found {
            Found::Block(header, block) => self.block(path, rank, &header, *block),
            Found::Skipped { at, bytes } => {
                self.ranks.entry(rank).or_default().damaged += 1;
                let health = &mut self.timeline.health;
                health.bad_blocks += 1;
                health.skipped_bytes += bytes;
                health.problems.push(format!("{}: {bytes} bytes at {at} are damaged and were skipped", path.display()));
            }
        }
    }

    /// Says that a rank's file ends in the middle of a block.
    pub(crate) fn torn(&mut self, path: &Path, at: u64, bytes: u64) {
        let health = &mut self.timeline.health;
        health.skipped_bytes += bytes;
        let place = path.display();
        health.problems.push(format!("{place}: torn: the last {bytes} bytes, from {at} on, are no whole block"));
    }

    /// Sorts what was added, and sums the ranks up.
    pub(crate) fn settle(&mut self) {
        let timeline = &mut self.timeline;
        // The sort is stable and quick on what is nearly sorted, which blocks are.
        timeline.spans.sort_by_key(|s| (s.lane, s.begin_ns, s.depth));
        timeline.iterations.sort_by_key(|i| (i.lane, i.begin_ns));
        timeline.samples.sort_by_key(|s| s.time_ns);
        timeline.flows.sort_by_key(|f| f.time_ns);
        timeline.marks.sort_by_key(|m| m.time_ns);
        timeline.anchors.sort_by_key(|a| a.monotonic_ns);
        timeline.device_anchors.sort_by_key(|a| a.host_ns);
        timeline.stacks.sort_by_key(|s| s.time_ns);
        let ranks = self.ranks.values();
        timeline.lane_totals = lane_totals(ranks.clone());
        timeline.open = ranks.clone().flat_map(|rank| rank.open.iter().copied()).collect();
        timeline.totals = ranks.clone().fold(Totals::default(), |sum, rank| sum.plus(&rank.past).plus(&rank.totals));
        timeline.health.ended = !self.ranks.is_empty() && self.ranks.values().all(|rank| rank.ended);
    }

    /// Forgets what ended before `from_ns`.
    pub(crate) fn forget_before(&mut self, from_ns: i64) {
        let timeline = &mut self.timeline;
        let end = |begin_ns: i64, duration_ns: u64| begin_ns.saturating_add_unsigned(duration_ns);
        timeline.spans.retain(|s| end(s.begin_ns, s.duration_ns) >= from_ns);
        timeline.iterations.retain(|i| end(i.begin_ns, i.duration_ns) >= from_ns);
        timeline.samples.retain(|s| s.time_ns >= from_ns);
        timeline.flows.retain(|f| f.time_ns >= from_ns);
        timeline.marks.retain(|m| m.time_ns >= from_ns);
        timeline.device_anchors.retain(|a| a.host_ns >= from_ns);
        timeline.stacks.retain(|s| s.time_ns >= from_ns);
        // The first anchor dates the run, however old it is.
        let first = timeline.anchors.first().copied();
        timeline.anchors.retain(|a| a.monotonic_ns >= from_ns || Some(*a) == first);
    }

    fn block(&mut self, path: &Path, rank: u32, header: &Header, block: Block) {
        self.check_sequence(path, rank, header.sequence);
        if header.last_ns != 0 {
            self.newest_ns = Some(self.newest_ns.map_or(header.last_ns, |ns| ns.max(header.last_ns)));
        }
        let timeline = &mut self.timeline;
        let names = ids(&mut self.names, &mut timeline.names, block.names);
        let lanes = ids(&mut self.lanes, &mut timeline.lanes, block.lanes);
        let counters = ids(&mut self.counters, &mut timeline.counters, block.counters);
        // The decoder has checked every id against its block's lists.
        let name = |id: NameId| NameId(names[id.0 as usize]);
        let lane = |id: LaneId| LaneId(lanes[id.0 as usize]);
        let counter = |id: CounterId| CounterId(counters[id.0 as usize]);
        timeline.spans.extend(block.spans.into_iter().map(|mut span| {
            (span.name, span.lane) = (name(span.name), lane(span.lane));
            span
        }));
        timeline.iterations.extend(block.iterations.into_iter().map(|mut iteration| {
            iteration.lane = lane(iteration.lane);
            iteration
        }));
        timeline.samples.extend(block.samples.into_iter().map(|mut sample| {
            sample.counter = counter(sample.counter);
            sample
        }));
        timeline.flows.extend(block.flows.into_iter().map(|mut flow| {
            flow.lane = lane(flow.lane);
            flow
        }));
        timeline.marks.extend(block.marks);
        timeline.anchors.extend(block.anchors);
        let device_anchor = |a: DeviceAnchor| DeviceAnchor { device: name(a.device), ..a };
        timeline.device_anchors.extend(block.device_anchors.into_iter().map(device_anchor));
        timeline.stacks.extend(block.stacks.into_iter().map(|stack| {
            let names = |ids: Vec<NameId>| ids.into_iter().map(name).collect();
            let (spans, frames) = (names(stack.spans), names(stack.frames));
            StackSample { thread: name(stack.thread), lane: stack.lane.map(lane), spans, frames, ..stack }
        }));
        let state = self.ranks.entry(rank).or_default();
        state.ended = header.end;
        state.totals = block.totals.unwrap_or(state.totals);
        state.lanes.extend(block.lane_totals.iter().map(|t| (lane(t.lane), LaneTotals { lane: lane(t.lane), ..*t })));
        if let Some(open) = block.open {
            state.open = open.iter().map(|o| OpenSpan { name: name(o.name), lane: lane(o.lane), ..*o }).collect();
        }
    }

    /// Notices blocks that are missing without a trace.
    fn check_sequence(&mut self, path: &Path, rank: u32, sequence: u32) {
        let state = self.ranks.entry(rank).or_default();
        let expected = state.next.replace(sequence.wrapping_add(1));
        let damaged = std::mem::take(&mut state.damaged);
        if sequence == 0 && expected.is_some() {
            // The next attempt of a resumed run.
            state.past = state.past.plus(&std::mem::take(&mut state.totals));
            add_lanes(&mut state.past_lanes, std::mem::take(&mut state.lanes).into_values());
            return;
        }
        // A stream without its first blocks was not torn: old segments are deleted when `keep` says so.
        let Some(expected) = expected else { return };
        let missing = u64::from(sequence.wrapping_sub(expected)).saturating_sub(damaged);
        if missing > 0 {
            let health = &mut self.timeline.health;
            health.bad_blocks += missing;
            let text =
                format!("{}: blocks {expected} to {} are not all there", path.display(), sequence.wrapping_sub(1));
            health.problems.push(text);
        }
    }
}

/// Each lane's totals over attempts.
fn lane_totals<'a>(ranks: impl Iterator<Item = &'a Rank>) -> Vec<LaneTotals> {
    let mut sums = BTreeMap::new();
    for rank in ranks {
        add_lanes(&mut sums, rank.past_lanes.values().chain(rank.lanes.values()).copied());
    }
    sums.into_values().collect()
}

fn add_lanes(sums: &mut BTreeMap<LaneId, LaneTotals>, more: impl Iterator<Item = LaneTotals>) {
    for totals in more {
        let nothing = LaneTotals { emitted: 0, written: 0, dropped: 0, ..totals };
        let sum = sums.entry(totals.lane).or_insert(nothing);
        sum.emitted = sum.emitted.saturating_add(totals.emitted);
        sum.written = sum.written.saturating_add(totals.written);
        sum.dropped = sum.dropped.saturating_add(totals.dropped);
    }
}

/// The timeline's ids of a block's texts.
fn ids<T: Clone + Eq + Hash>(known: &mut HashMap<T, u32>, all: &mut Vec<T>, texts: Vec<T>) -> Vec<u32> {
    let id = |text: T| {
        *known.entry(text).or_insert_with_key(|text| {
            all.push(text.clone());
            (all.len() - 1) as u32
        })
    };
    texts.into_iter().map(id).collect()
}

impl Totals {
    /// The sum of two streams' totals.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            emitted: self.emitted.saturating_add(other.emitted),
            written: self.written.saturating_add(other.written),
            dropped: self.dropped.saturating_add(other.dropped),
            open: self.open.saturating_add(other.open),
            negative: self.negative.saturating_add(other.negative),
            unresolved: self.unresolved.saturating_add(other.unresolved),
            misplaced: self.misplaced.saturating_add(other.misplaced),
        }
    }
}
