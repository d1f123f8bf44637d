//! Records that wait for the device time of the first of them.

use dflash_timeline::record::{DeviceTime, Iteration, LaterTime, Span};

use super::{Desk, Feed};
use crate::on::device::Look;
use crate::on::event::{Event, Ticket};

/// A record that waits.
#[derive(Debug)]
pub(super) struct Waiting {
    pub record: Event,
    pub ticket: Option<Ticket>,
    /// CPU time and tokens.
    pub usage: (u64, u64),
    /// What the stream has of it already.
    pub wrote: Option<Wrote>,
}

/// What went into the stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wrote {
    Span(Span),
    Iteration(Iteration),
    Other,
}

impl Feed {
    /// Lets go what waits no longer.
    pub(super) fn release(&mut self, desk: &mut Desk<'_>) {
        let mut later = Vec::new();
        while let Some(first) = self.waiting.front() {
            let look = first.ticket.map(|ticket| self.times.look(ticket));
            if look == Some(Look::NotYet) && self.waiting.len() <= desk.timing.waiting && !desk.expired(first.record) {
                break;
            }
            let Some(Waiting { record, usage, wrote, ticket }) = self.waiting.pop_front() else { break };
            let device = match look {
                Some(Look::Known(time)) => {
                    let stream = ticket.map(|ticket| desk.out.device_stream(ticket.stream));
                    Some(DeviceTime { stream, ..time })
                }
                Some(Look::Negative) => {
                    self.negative += 1;
                    None
                }
                Some(Look::Never | Look::NotYet) => {
                    self.unresolved += 1;
                    None
                }
                None => None,
            };
            let Some(mut wrote) = wrote else {
                self.write(record, device, usage, desk);
                continue;
            };
            self.ahead = self.ahead.saturating_sub(1);
            if let (Wrote::Span(span), Some(device)) = (&mut wrote, device) {
                span.device = Some(device);
                later.push(LaterTime { lane: self.lane, begin_ns: span.begin_ns, device });
            }
            self.conclude(record, wrote, desk);
        }
        desk.out.later(self.lane, &later);
    }

    pub(super) fn prune(&mut self, oldest: u64) {
        if self.times.len() > super::MANY_MOMENTS {
            let waiting = self.waiting.iter().filter_map(|waiting| waiting.ticket).map(|ticket| ticket.begin);
            self.times.prune(waiting.min().unwrap_or(u64::MAX).min(oldest));
        }
    }
}

impl Desk<'_> {
    /// Whether a span has waited long enough.
    fn expired(&self, record: Event) -> bool {
        matches!(record, Event::Span { end, .. } if self.map.ns(end) < self.expired_ns)
    }
}
