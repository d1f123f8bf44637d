//! The events of one lane on one stream, in order.

use std::collections::VecDeque;

use super::anchors::Anchors;
use super::shared::{Moment, Time};
use crate::{DeviceError, DeviceEvent, StreamKey};

/// A difference of f32 milliseconds above this (4 s) is known less well than the anchors in between.
const LONG_NS: i64 = 1 << 32;

/// A queue that the stream passes from its head on.
#[derive(Debug)]
pub(super) struct Fifo {
    pub key: StreamKey,
    /// The last event that was timed: the next is compared with it.
    previous: Option<Previous>,
    queue: VecDeque<Waiting>,
    /// Anchors that there were when the chain was last compared with one.
    compared: u64,
    /// When it last had something to do, host's nanoseconds.
    pub used_ns: i64,
}

#[derive(Debug)]
struct Previous {
    event: Box<dyn DeviceEvent>,
    /// Sum of differences along this stream. It begins where the device's clock stood.
    chain_ns: i64,
    /// From there to the device's clock: what the rounding of all those differences has added up to.
    offset_ns: i64,
}

#[derive(Debug)]
struct Waiting {
    number: u64,
    event: Box<dyn DeviceEvent>,
    since_ns: i64,
}

impl Fifo {
    pub(super) fn new(key: StreamKey, now_ns: i64) -> Self {
        Self { key, previous: None, queue: VecDeque::new(), compared: 0, used_ns: now_ns }
    }

    pub(super) fn push(&mut self, number: u64, event: Box<dyn DeviceEvent>, now_ns: i64) {
        self.used_ns = now_ns;
        self.queue.push_back(Waiting { number, event, since_ns: now_ns });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Times what the stream has passed; gives up on what has waited since before `expired_ns`. Events that are done with
    /// are given to `recycle`.
    pub(super) fn poll(
        &mut self,
        anchors: &Anchors,
        expired_ns: i64,
        times: &mut Vec<Time>,
        recycle: &mut dyn FnMut(Box<dyn DeviceEvent>),
    ) -> Result<(), DeviceError> {
        loop {
            self.time_passed(anchors, times, recycle)?;
            // Not reused: it may still be on its way, and become ready for the wrong moment.
            let Some(late) = self.queue.pop_front_if(|head| head.since_ns < expired_ns) else { return Ok(()) };
            times.push((late.number, None));
        }
    }

    fn time_passed(
        &mut self,
        anchors: &Anchors,
        times: &mut Vec<Time>,
        recycle: &mut dyn FnMut(Box<dyn DeviceEvent>),
    ) -> Result<(), DeviceError> {
        // Without an anchor nobody could say when on the host's clock an event was.
        let passed = if anchors.count() > 0 { self.passed()? } else { 0 };
        for _ in 0..passed {
            let Some(head) = self.queue.front() else { break };
            let settled = match self.settle(anchors, &*head.event) {
                Ok(settled) => Some(settled),
                // The stream has passed it, and it is not ready: it never will be.
                Err(_) if !head.event.ready()? => None,
                Err(error) => return Err(error),
            };
            let Some(Waiting { number, event, .. }) = self.queue.pop_front() else { break };
            let Some((chain_ns, offset_ns)) = settled else {
                times.push((number, None));
                continue;
            };
            self.compared = anchors.count();
            let host_ns = anchors.map.host_ns(chain_ns + offset_ns);
            times.push((number, host_ns.map(|host_ns| Moment { chain_ns, host_ns })));
            let done = self.previous.replace(Previous { event, chain_ns, offset_ns });
            done.into_iter().for_each(|previous| recycle(previous.event));
        }
        Ok(())
    }

    /// How many of the queue's first the stream has passed. It passes them in order, so that few are asked: a question costs
    /// ten times what a difference of two events costs, and holds up the calls that the lane itself makes to the device.
    fn passed(&self) -> Result<usize, DeviceError> {
        let (mut passed, mut open) = (0, self.queue.len());
        // Mostly the stream is through with all, or with all but a few.
        let mut next = open.saturating_sub(1);
        while passed < open {
            if self.queue[next].event.ready()? {
                passed = next + 1;
            } else {
                open = next;
            }
            next = passed + (open - passed) / 2;
        }
        Ok(passed)
    }

    /// Where an event lies on the chain, and the chain on the device's clock.
    fn settle(&self, anchors: &Anchors, event: &dyn DeviceEvent) -> Result<(i64, i64), DeviceError> {
        let placed = if self.compared == anchors.count() { None } else { anchors.place(event)? };
        let Some(previous) = &self.previous else {
            let placed = if placed.is_some() { placed } else { anchors.place(event)? };
            return Ok((placed.map_or(0, |(device_ns, _)| device_ns), 0));
        };
        let step = previous.event.elapsed_ns(event)?;
        let mut chain_ns = previous.chain_ns + step;
        // A young anchor shows what rounding has added up to; one that is itself far away would add its own.
        match placed.filter(|(_, distance)| *distance < step.abs().max(LONG_NS)) {
            Some((device_ns, _)) if step > LONG_NS => {
                chain_ns = device_ns - previous.offset_ns;
                Ok((chain_ns, previous.offset_ns))
            }
            Some((device_ns, _)) => Ok((chain_ns, device_ns - chain_ns)),
            None => Ok((chain_ns, previous.offset_ns)),
        }
    }

    /// Gives everything up.
    pub(super) fn lose(&mut self, times: &mut Vec<Time>) {
        times.extend(self.queue.drain(..).map(|waiting| (waiting.number, None)));
        self.previous = None;
    }
}
