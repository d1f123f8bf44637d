//! The records that come once in a while: texts, anchors, marks, stacks, what is open, accounts.

use super::{Decoder, id};
use crate::dictionary::Dictionary;
use crate::encode::tag;
use crate::record::{Anchor, DeviceAnchor, Expired, LaneId, LaneTotals, Mark, NameId, OpenSpan, Severity};
use crate::record::{StackSample, Totals};
use crate::varint::Input;
use crate::visit::{Account, Visit};

impl<V: Visit> Decoder<'_, '_, V> {
    pub(super) fn rare(&mut self, tag: u8) -> Option<()> {
        self.input.byte()?;
        match tag {
            tag::ANCHOR => {
                let (monotonic_ns, realtime_ns) = (self.time()?, self.input.signed()?);
                self.visit.anchor(Anchor { monotonic_ns, realtime_ns });
            }
            tag::MARK_INFO => self.mark(Severity::Info)?,
            tag::MARK_WARNING => self.mark(Severity::Warning)?,
            tag::OPEN => self.open()?,
            tag::TOTALS => self.totals()?,
            tag::DEVICE_ANCHOR => self.device_anchor()?,
            tag::STACK => self.stack()?,
            tag::LANE_TOTALS | tag::LANE_WHOLE => self.lane_totals(tag)?,
            tag::EXPIRED => self.expired()?,
            tag::LATER => self.later()?,
            tag::ON_STREAM => self.on_stream()?,
            tag::AWAITED => self.awaited()?,
            _ => return None,
        }
        Some(())
    }

    fn on_stream(&mut self) -> Option<()> {
        let [local, stream] = self.numbers()?;
        if let Some(stream) = stream.checked_sub(1) {
            id(self.ids.streams, stream)?;
        }
        self.states.lanes.get_mut(usize::try_from(local).ok()?)?.stream = u32::try_from(stream).ok()?;
        Some(())
    }

    fn mark(&mut self, severity: Severity) -> Option<()> {
        let (time_ns, text) = (self.time()?, self.input.text()?.to_owned());
        self.visit.mark(Mark { time_ns, severity, text });
        Some(())
    }

    fn open(&mut self) -> Option<()> {
        // Pushed one by one: a damaged count must not reserve memory.
        let mut open = Vec::new();
        for _ in 0..self.input.number()? {
            let name = self.name()?;
            let local = self.input.number()?;
            let lane = id(self.ids.lanes, local).map(LaneId)?;
            let since = self.states.lanes.get(usize::try_from(local).ok()?)?.end_ns;
            open.push(OpenSpan { name, lane, begin_ns: since.wrapping_add(self.input.signed()?) });
        }
        self.visit.account(Account::Open(open));
        Some(())
    }

    fn totals(&mut self) -> Option<()> {
        let [emitted, written, dropped, open, negative, unresolved, misplaced] = self.numbers()?;
        let totals = Totals { emitted, written, dropped, open, negative, unresolved, misplaced };
        self.visit.account(Account::Totals(totals));
        Some(())
    }

    fn lane_totals(&mut self, tag: u8) -> Option<()> {
        let [local, emitted] = self.numbers()?;
        let whole = tag == tag::LANE_WHOLE;
        let (dropped, missing) = if whole { (0, 0) } else { (self.input.number()?, self.input.signed()?) };
        let missing = missing.cast_unsigned();
        let written = emitted.wrapping_sub(dropped).wrapping_sub(missing);
        let lane = id(self.ids.lanes, local).map(LaneId)?;
        self.visit.account(Account::Lane(LaneTotals { lane, emitted, written, dropped }));
        Some(())
    }

    fn expired(&mut self) -> Option<()> {
        let [first_kept, records, segments, bytes] = self.numbers()?;
        let expired = Expired { records, segments, bytes };
        self.visit.account(Account::Expired(u32::try_from(first_kept).ok()?, expired));
        Some(())
    }

    fn device_anchor(&mut self) -> Option<()> {
        let device = self.name()?;
        let (device_ns, host_ns) = (self.input.signed()?, self.time()?);
        let uncertainty_ns = self.input.number()?;
        self.visit.device_anchor(DeviceAnchor { device, device_ns, host_ns, uncertainty_ns });
        Some(())
    }

    fn stack(&mut self) -> Option<()> {
        let time_ns = self.stack_ns.wrapping_add(self.input.signed()?);
        let tid = u32::try_from(self.input.number()?).ok()?;
        let thread = self.name()?;
        let lane = match self.input.number()?.checked_sub(1) {
            Some(lane) => Some(id(self.ids.lanes, lane).map(LaneId)?),
            None => None,
        };
        let iteration = self.input.number()?.checked_sub(1);
        let (spans, frames) = (self.names()?, self.names()?);
        self.stack_ns = time_ns;
        self.visit.stack(StackSample { time_ns, tid, thread, lane, iteration, spans, frames });
        Some(())
    }

    /// A time that is no difference to another.
    fn time(&mut self) -> Option<i64> {
        Some(self.input.signed()?.wrapping_add(self.shift_ns))
    }

    fn name(&mut self) -> Option<NameId> {
        id(self.ids.names, self.input.small()?).map(NameId)
    }

    /// A count and as many names, pushed one by one.
    fn names(&mut self) -> Option<Vec<NameId>> {
        let count = self.input.number()?;
        (0..count).map(|_| self.name()).collect()
    }

    fn numbers<const N: usize>(&mut self) -> Option<[u64; N]> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = self.input.number()?;
        }
        Some(numbers)
    }
}

impl Dictionary {
    /// Whether a record with this tag is a text.
    pub(super) fn holds(tag: u8) -> bool {
        matches!(tag, tag::NAME | tag::LANE | tag::COUNTER | tag::OWN_LANE | tag::OWN_COUNTER)
            || matches!(tag, tag::STREAM | tag::OWN_STREAM)
    }

    /// Takes the text that `input` stands before, in a block of `rank`.
    pub(super) fn take(&mut self, input: &mut Input<'_>, rank: u32) -> Option<()> {
        let tag = input.byte()?;
        let first = self.texts.unpack(input)?;
        if tag == tag::NAME {
            self.names.push(first);
            return Some(());
        }
        let second = self.texts.unpack(input)?;
        let own = matches!(tag, tag::OWN_LANE | tag::OWN_COUNTER | tag::OWN_STREAM);
        let rank = if own { rank } else { u32::try_from(input.number()?).ok()? };
        let of_kind = match tag {
            tag::LANE | tag::OWN_LANE => &mut self.lanes,
            tag::COUNTER | tag::OWN_COUNTER => &mut self.counters,
            _ => {
                self.texts.text(&second).parse::<i64>().ok()?;
                &mut self.streams
            }
        };
        of_kind.push((first, second, rank));
        Some(())
    }

    /// The same as it was in version 1.
    pub(super) fn take_plain(&mut self, input: &mut Input<'_>) -> Option<()> {
        let tag = input.byte()?;
        let first = self.texts.plain(input)?;
        if tag == tag::NAME {
            self.names.push(first);
            return Some(());
        }
        let both = (first, self.texts.plain(input)?, u32::try_from(input.number()?).ok()?);
        if tag == tag::LANE {
            self.lanes.push(both)
        } else {
            self.counters.push(both)
        }
        Some(())
    }
}
