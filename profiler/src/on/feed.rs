//! A lane's end at the writer: ticks become nanoseconds, call sites names.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use dflash_timeline::record::{Flow, Iteration, LaneId, OpenSpan, Span, Totals};
use rtrb::Consumer;

use super::clock_map::ClockMap;
use super::event::{Event, NONE};
use super::hub::{LaneShared, NewLane};
use super::open::DEEPEST;
use super::output::Output;
use super::rows::StageSums;

/// One lane, as the writer sees it.
#[derive(Debug)]
pub(crate) struct Feed {
    events: Consumer<Event>,
    shared: Arc<LaneShared>,
    lane: LaneId,
    sums: StageSums,
    negative: u64,
    said_loss: bool,
}

impl Feed {
    pub(crate) fn new(lane: NewLane, out: &mut Output) -> Self {
        let id = out.lane(&lane.shared.name, &lane.shared.device);
        let NewLane { events, shared } = lane;
        Self { events, shared, lane: id, sums: StageSums::default(), negative: 0, said_loss: false }
    }

    /// Takes what is in the ring now. Whether the lane has ended and all of it was taken.
    pub(crate) fn collect(&mut self, map: &ClockMap, out: &mut Output) -> bool {
        // Looked at first: whatever was put before the lane ended is then in the ring.
        let ended = self.events.is_abandoned();
        // Only what is there now, so that a lane that never rests cannot keep the writer here.
        for _ in 0..self.events.slots() {
            let Ok(event) = self.events.pop() else { break };
            self.take(event, map, out);
        }
        ended
    }

    fn take(&mut self, event: Event, map: &ClockMap, out: &mut Output) {
        match event {
            Event::Span { depth, site, index, iteration, begin, end } => {
                let (begin_ns, duration_ns) = self.time(map, begin, end);
                let (lane, name) = (self.lane, out.name(site));
                let (index, iteration) = (some(index), some(iteration));
                let span = Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device: None };
                self.sums.add(site, &span);
                out.span(&span);
            }
            Event::Iteration { kind, number, begin, end, cpu_ns, tokens } => {
                let (begin_ns, duration_ns) = self.time(map, begin, end);
                let (cpu_ns, tokens) = (Some(cpu_ns), some(tokens));
                let iteration = Iteration { lane: self.lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens };
                out.iteration(&self.shared, &iteration, &mut self.sums);
            }
            Event::Flow { end, id, at } => out.flow(&Flow { id, end, lane: self.lane, time_ns: map.ns(at) }),
        }
    }

    /// Begin and duration in nanoseconds. A clock that ran backwards gives 0, and is counted.
    fn time(&mut self, map: &ClockMap, begin: u64, end: u64) -> (i64, u64) {
        let (begin_ns, end_ns) = (map.ns(begin), map.ns(end));
        if end < begin {
            self.negative += 1;
        }
        (begin_ns, u64::try_from(end_ns.saturating_sub(begin_ns)).unwrap_or(0))
    }

    /// The lane's open spans.
    pub(crate) fn open(&self, map: &ClockMap, out: &mut Output) -> Vec<OpenSpan> {
        let open = self.shared.open.look().into_iter();
        open.map(|(site, begin)| OpenSpan { name: out.name(site), lane: self.lane, begin_ns: map.ns(begin) }).collect()
    }

    /// The lane's account.
    pub(crate) fn account(&self) -> Totals {
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let shared = &self.shared;
        Totals {
            emitted: load(&shared.emitted),
            dropped: load(&shared.dropped),
            misplaced: load(&shared.misplaced),
            negative: self.negative,
            open: shared.open.look().len() as u64,
            ..Totals::default()
        }
    }

    /// A warning, once, when records of this lane were lost.
    pub(crate) fn new_loss(&mut self) -> Option<String> {
        let dropped = self.shared.dropped.load(Ordering::Relaxed);
        if dropped == 0 || std::mem::replace(&mut self.said_loss, true) {
            return None;
        }
        let name = &self.shared.name;
        Some(format!(
            "lane {name}: some spans are lost, since they came faster than they could be written or lay more than \
             {DEEPEST} deep; the residue of their iterations is too high"
        ))
    }
}

fn some(value: u64) -> Option<u64> {
    (value != NONE).then_some(value)
}
