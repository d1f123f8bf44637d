//! The events of one lane on one stream, in order.

use std::collections::VecDeque;

use super::anchors::Anchors;
use super::shared::{Moment, Time};
use crate::{DeviceError, DeviceEvent, StreamKey};

/// A difference of f32 milliseconds above this (4 s) is known less well than the anchors in between.
const LONG_NS: i64 = 1 << 32;

/// A queue of which only the head is looked at.
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

    /// Times what is ready; gives up on what has waited since before `expired_ns`. Events that are done with are given to
    /// `recycle`.
    pub(super) fn poll(
        &mut self,
        anchors: &Anchors,
        expired_ns: i64,
        times: &mut Vec<Time>,
        recycle: &mut dyn FnMut(Box<dyn DeviceEvent>),
    ) -> Result<(), DeviceError> {
        while let Some(head) = self.queue.front() {
            // Without an anchor nobody could say when on the host's clock it was.
            if anchors.count() > 0 && head.event.ready()? {
                let (chain_ns, offset_ns) = self.settle(anchors, &*head.event)?;
                let Some(Waiting { number, event, .. }) = self.queue.pop_front() else { break };
                self.compared = anchors.count();
                let host_ns = anchors.map.host_ns(chain_ns + offset_ns);
                times.push((number, host_ns.map(|host_ns| Moment { chain_ns, host_ns })));
                let done = self.previous.replace(Previous { event, chain_ns, offset_ns });
                done.into_iter().for_each(|previous| recycle(previous.event));
            } else if head.since_ns < expired_ns {
                // Not reused: it may still be on its way, and become ready for the wrong moment.
                times.extend(self.queue.pop_front().map(|head| (head.number, None)));
            } else {
                break;
            }
        }
        Ok(())
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
