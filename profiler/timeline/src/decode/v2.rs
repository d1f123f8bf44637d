//! The records of version 2, which stand one after the other, each behind its tag.
//!
//! | tag | record | fields |
//! |---|---|---|
//! | 80-ff | span | see `v2/span.rs` |
//! | 04-07 | iteration | lane · 8 + kind, ±number since that of the lane's last span, ±begin since the end of the lane's last iteration (if the block has none: since the lane), ±end since the lane; tag bit 0: CPU time; bit 1: tokens |
//! | 40-7f | sample (bits as in `encode.rs`) | counter; time since the last sample, 3 bytes, or ± in 8 bytes if T; value |
//!
//! All others hold what they hold in later versions; those with a stream do not say it.

mod sample;
mod span;

pub(super) use self::span::Shapes;
use super::{Decoder, id};
use crate::encode::{KINDS, LaneState, tag};
use crate::record::{Flow, FlowEnd, Iteration, LaneId};
use crate::varint::{Input, ROOM, Room, unzigzag};
use crate::visit::Visit;

impl<'a, V: Visit> Decoder<'a, '_, V> {
    pub(super) fn v2_records(&mut self, count: u32) -> Option<()> {
        let mut rest = self.input.0;
        let mut left = count;
        while left > 0 {
            // Most records follow one of their sort.
            let tag = *rest.first()?;
            let (count, behind) = match tag {
                tag::SPAN.. => self.v2_spans(rest, left)?,
                tag::SAMPLE.. => self.v2_samples(rest, left)?,
                _ => (0, rest),
            };
            (rest, left) = (behind, left - count);
            if count == 0 {
                rest = rest.get(self.v2_record(rest, tag)?..)?;
                left -= 1;
            }
        }
        self.input = Input(rest);
        Some(())
    }

    /// Reads a record, and returns its length; the same do the next ones.
    fn v2_record(&mut self, rest: &'a [u8], tag: u8) -> Option<usize> {
        // A record that reaches into the padding leaves too little of it.
        let room = rest.first_chunk()?;
        match tag {
            tag::SPAN.. => self.v2_span(room),
            tag::ITERATION..=tag::ITERATION_LAST => self.v2_iteration(room),
            tag::FLOW_PUT => self.v2_flow(room, FlowEnd::Put),
            tag::FLOW_TAKE => self.v2_flow(room, FlowEnd::Take),
            _ => {
                self.input = Input(rest);
                self.input.byte()?;
                self.rare(tag)?;
                Some(rest.len() - self.input.0.len())
            }
        }
    }

    #[inline(never)]
    fn v2_iteration(&mut self, room: &[u8; ROOM]) -> Option<usize> {
        let (tag, mut input) = (room[0], Room::behind_tag(room));
        let both = input.small()?;
        let (local, kind) = (both >> 3, both & 7);
        let lane = id(self.ids.lanes, local).map(LaneId)?;
        let kind = *KINDS.get(usize::try_from(kind).ok()?)?;
        let state = self.states.lanes.get_mut(usize::try_from(local).ok()?)?;
        let (number, begin_ns) = state.next_iteration();
        // Mostly the one of the lane's last span.
        let number = number.wrapping_add_signed(unzigzag(input.small()?));
        let begin_ns = begin_ns.wrapping_add(input.signed()?);
        let end_ns = state.end_ns.wrapping_add(input.signed()?);
        let duration_ns = end_ns.wrapping_sub(begin_ns).cast_unsigned();
        let cpu_ns = if tag & tag::ITERATION_CPU != 0 { Some(input.number()?) } else { None };
        let tokens = if tag & tag::ITERATION_TOKENS != 0 { Some(input.number()?) } else { None };
        *state = LaneState { end_ns, iteration: number, iteration_end_ns: Some(end_ns), ..*state };
        self.visit.iteration(Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens });
        Some(input.length)
    }

    fn v2_flow(&mut self, room: &[u8; ROOM], end: FlowEnd) -> Option<usize> {
        let mut input = Room::behind_tag(room);
        let last = &mut self.flows[usize::from(end == FlowEnd::Take)];
        *last = last.wrapping_add_signed(input.signed()?);
        let local = input.small()?;
        let lane = id(self.ids.lanes, local).map(LaneId)?;
        let since = self.states.lanes.get(usize::try_from(local).ok()?)?.end_ns;
        let time_ns = since.wrapping_add(input.signed()?);
        self.visit.flow(Flow { id: *last, end, lane, time_ns });
        Some(input.length)
    }
}
