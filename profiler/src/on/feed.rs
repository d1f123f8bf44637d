//! A lane's end at the writer: ticks become nanoseconds, call sites names, spans get their device times.

mod ahead;
mod waiting;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dflash_timeline::record::{DeviceTime, Flow, Iteration, LaneId, OpenSpan, Span, Totals};
use rtrb::Consumer;

use self::waiting::{Waiting, Wrote};
use super::account::Source;
use super::clock_map::ClockMap;
use super::cost::LaneCost;
use super::device::{Strides, Times};
use super::event::{Event, Moved, NONE, Ticket};
use super::hub::{LaneShared, NewLane, lock};
use super::open::DEEPEST;
use super::output::Output;
use super::rows::StageSums;
use super::site;
use crate::DeviceTiming;

/// Moments of a lane from which on it is worth finding out which are no longer needed.
const MANY_MOMENTS: usize = 1024;

/// One lane, as the writer sees it.
#[derive(Debug)]
pub(crate) struct Feed {
    events: Consumer<Event>,
    pub shared: Arc<LaneShared>,
    lane: LaneId,
    pub source: Source,
    sums: StageSums,
    pub cost: LaneCost,
    times: Times,
    strides: Strides,
    /// Records that wait for the device time of the first, in the lane's order.
    waiting: VecDeque<Waiting>,
    /// Of these, from the first on, so many are in the stream already.
    ahead: usize,
    /// The stream says that device times of this lane may come later.
    awaited: bool,
    /// What belongs to the next record.
    ticket: Option<Ticket>,
    usage: (u64, u64),
    negative: u64,
    unresolved: u64,
    said_loss: bool,
}

/// What the writer gives its feeds.
pub(crate) struct Desk<'a> {
    pub map: &'a ClockMap,
    pub out: &'a mut Output,
    pub timing: &'a DeviceTiming,
    /// Spans that ended before this, nanoseconds, wait no longer for their device times.
    pub expired_ns: i64,
}

impl Feed {
    pub(crate) fn new(lane: NewLane, out: &mut Output, timing: &DeviceTiming) -> Self {
        let (id, source) = out.lane(&lane.shared.name, &lane.shared.device);
        let NewLane { events, shared } = lane;
        let below_ns = u64::try_from(timing.stride_below.as_nanos()).unwrap_or(u64::MAX);
        Self {
            events,
            shared,
            lane: id,
            source,
            sums: StageSums::default(),
            cost: LaneCost::default(),
            times: Times::default(),
            strides: Strides::new(below_ns),
            waiting: VecDeque::new(),
            ahead: 0,
            awaited: false,
            ticket: None,
            usage: (NONE, NONE),
            negative: 0,
            unresolved: 0,
            said_loss: false,
        }
    }

    /// Takes what is in the ring now. Whether the lane has ended and all of it is written.
    pub(crate) fn collect(&mut self, desk: &mut Desk<'_>) -> bool {
        // Looked at first: whatever was put before the lane ended, or before a moment was no longer needed, is then in
        // the ring.
        let ended = self.events.is_abandoned();
        let oldest = self.shared.device_times.oldest.load(Ordering::Acquire);
        let times = std::mem::take(&mut *lock(&self.shared.device_times.times));
        times.into_iter().for_each(|time| self.times.put(time));
        // Only what is there now, so that a lane that never rests cannot keep the writer here.
        for _ in 0..self.events.slots() {
            let Ok(event) = self.events.pop() else { break };
            self.take(event, desk);
        }
        self.release(desk);
        self.prune(oldest);
        ended && self.waiting.is_empty()
    }

    fn take(&mut self, event: Event, desk: &mut Desk<'_>) {
        match event {
            Event::Ticket(ticket) => self.ticket = Some(ticket),
            Event::Usage { cpu_ns, tokens } => self.usage = (cpu_ns, tokens),
            record => {
                let ticket = self.ticket.take();
                let usage = std::mem::replace(&mut self.usage, (NONE, NONE));
                if ticket.is_none() && self.waiting.is_empty() {
                    self.write(record, None, usage, desk);
                } else {
                    self.waiting.push_back(Waiting { record, ticket, usage, wrote: None });
                }
            }
        }
    }

    fn write(&mut self, record: Event, device: Option<DeviceTime>, usage: (u64, u64), desk: &mut Desk<'_>) {
        let wrote = self.put(record, device, usage, desk);
        self.conclude(record, wrote, desk);
    }

    /// Puts a record into the stream.
    fn put(&mut self, record: Event, device: Option<DeviceTime>, usage: (u64, u64), desk: &mut Desk<'_>) -> Wrote {
        let (lane, source) = (self.lane, self.source);
        match record {
            Event::Span { depth, site, index, iteration, begin, end } => {
                let (begin_ns, duration_ns) = self.time(desk.map, begin, end);
                let (name, index, iteration) = (desk.out.name(site), some(index), some(iteration));
                let span = Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device };
                desk.out.span(source, &span);
                return Wrote::Span(span);
            }
            Event::Iteration { kind, number, begin, end, .. } => {
                let (begin_ns, duration_ns) = self.time(desk.map, begin, end);
                let (cpu_ns, tokens) = (some(usage.0), some(usage.1));
                let iteration = Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens };
                desk.out.iteration(source, &iteration);
                return Wrote::Iteration(iteration);
            }
            Event::Flow { end, id, at } => desk.out.flow(source, &Flow { id, end, lane, time_ns: desk.map.ns(at) }),
            Event::Allocator { what, site, at, value } => self.moved(what, site, desk.map.ns(at), value, desk.out),
            Event::Ticket(_) | Event::Usage { .. } => {}
        }
        Wrote::Other
    }

    /// What follows from a record once all is known of it.
    fn conclude(&mut self, record: Event, wrote: Wrote, desk: &mut Desk<'_>) {
        match (record, wrote) {
            (Event::Span { site, .. }, Wrote::Span(span)) => {
                self.sums.add(site, &span);
                self.cost.spans += 1;
                self.observe(site, &span, desk);
            }
            (Event::Iteration { pairing, .. }, Wrote::Iteration(iteration)) => {
                self.cost.iteration(&iteration, pairing);
                desk.out.rows(&self.shared, &iteration, &mut self.sums, pairing.is_bare());
            }
            _ => {}
        }
    }

    /// Learns how long a site takes on the device; what is short is timed less often from then on.
    fn observe(&mut self, site: u32, span: &Span, desk: &mut Desk<'_>) {
        let (Some(device), Some(_)) = (span.device, span.iteration) else { return };
        if let Some(change) = self.strides.observe(site, device.duration_ns) {
            self.shared.device_times.set_stride(site, change.stride);
            let name = format!("device.stride.{}.{}", self.shared.name, site::name(site));
            let time_ns = dflash_sys::monotonic_ns();
            desk.out.own_sample(&name, "iterations", time_ns, f64::from(change.stride));
        }
    }

    /// A reading of the lane's allocator.
    fn moved(&mut self, what: Moved, site: u32, time_ns: i64, value: u64, out: &mut Output) {
        let device = self.shared.allocator.get().map_or("?", String::as_str);
        let (name, unit) = what.counter(device, site::name(site));
        out.sample(self.source, &name, unit, time_ns, value as f64);
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

    /// Records made and records that the full ring dropped, so far.
    pub(crate) fn made(&self) -> (u64, u64) {
        // In this order: each record is counted as made before it is dropped.
        let dropped = self.shared.dropped.load(Ordering::Acquire);
        (self.shared.emitted.load(Ordering::Acquire), dropped)
    }

    /// What went wrong on the lane beyond losses; `emitted`, `written` and `dropped` are the accounts'.
    pub(crate) fn faults(&self) -> Totals {
        Totals {
            misplaced: self.shared.misplaced.load(Ordering::Relaxed),
            negative: self.negative,
            unresolved: self.unresolved,
            open: self.shared.open.look().len() as u64,
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

#[cfg(test)]
mod tests;
