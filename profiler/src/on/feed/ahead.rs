//! A process may be killed at any moment, and a device may lag seconds behind: what the host knows is written with the next
//! block, the device's part once it is known.

use super::waiting::Wrote;
use super::{Desk, Feed};
use crate::on::event::Event;

impl Feed {
    /// Writes the host's part of all that waits.
    pub(crate) fn write_ahead(&mut self, desk: &mut Desk<'_>) {
        self.announce(desk);
        while let Some(next) = self.waiting.get(self.ahead) {
            let (record, usage) = (next.record, next.usage);
            let wrote = self.put(record, None, usage, desk);
            if let Some(next) = self.waiting.get_mut(self.ahead) {
                next.wrote = Some(wrote);
            }
            self.ahead += 1;
        }
    }

    /// Says which spans may get their device time later, before they are written.
    fn announce(&mut self, desk: &mut Desk<'_>) {
        let timed = self.waiting.iter().filter(|waiting| waiting.ticket.is_some());
        let begins = timed.filter_map(|waiting| match (waiting.wrote, waiting.record) {
            (Some(Wrote::Span(span)), _) => Some(span.begin_ns),
            (_, Event::Span { begin, .. }) => Some(desk.map.ns(begin)),
            _ => None,
        });
        let from_ns = begins.min();
        if from_ns.is_some() || self.awaited {
            self.awaited = from_ns.is_some();
            desk.out.awaited(self.lane, from_ns);
        }
    }
}
