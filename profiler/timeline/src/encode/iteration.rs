//! Iterations and hand-offs. Their bytes: the table in `encode.rs`.
//!
//! An iteration's lengths: bits 0-1 lane, 2-3 number, 4-5 begin, 6-7 end, 8-9 CPU time, 10-11 tokens: 0 to 3 for 1, 2, 4, 8
//! bytes. What is not there has no bytes.

use super::{Encoder, KINDS, end, room, tag};
use crate::record::{Flow, FlowEnd, Iteration, LaneId};
use crate::varint::{ROOM, Record, put, put_signed, zigzag};

/// Where the kind stands in the lengths.
pub(crate) const KIND_AT: u32 = 12;

impl Encoder {
    pub(crate) fn iteration(&mut self, iteration: &Iteration, lane: LaneId) {
        self.make_room(ROOM);
        let Some(state) = self.lanes.get_mut(lane.0 as usize) else { return };
        let cpu = if iteration.cpu_ns.is_some() { tag::ITERATION_CPU } else { 0 };
        let tokens = if iteration.tokens.is_some() { tag::ITERATION_TOKENS } else { 0 };
        let kind = KINDS.iter().position(|kind| *kind == iteration.kind).unwrap_or(0) as u64;
        let (number, begin_ns) = state.next_iteration();
        let end_ns = end(iteration.begin_ns, iteration.duration_ns);
        let mut record = Record::empty(room(&mut self.bytes, self.used));
        let mut lengths = (kind << KIND_AT) as u16;
        record.length = 2;
        let mut put = |place: u32, number: u64| {
            let code = u8::from(number >> 8 != 0) + u8::from(number >> 16 != 0) + u8::from(number >> 32 != 0);
            lengths |= u16::from(code) << (2 * place);
            record.fixed(number, 1 << code);
        };
        put(0, u64::from(lane.0));
        put(1, zigzag(iteration.number.wrapping_sub(number).cast_signed()));
        put(2, zigzag(iteration.begin_ns.wrapping_sub(begin_ns)));
        put(3, zigzag(end_ns.wrapping_sub(state.end_ns)));
        iteration.cpu_ns.into_iter().for_each(|cpu_ns| put(4, cpu_ns));
        iteration.tokens.into_iter().for_each(|tokens| put(5, tokens));
        record.begin(lengths);
        let length = record.length;
        state.iteration_ended(iteration.number, end_ns);
        self.seen(iteration.begin_ns, iteration.duration_ns);
        self.took(tag::ITERATION | cpu | tokens, length);
    }

    pub(crate) fn flow(&mut self, flow: &Flow, lane: LaneId) {
        let Some(state) = self.lanes.get(lane.0 as usize) else { return };
        let (tag, last) = match flow.end {
            FlowEnd::Put => (tag::FLOW_PUT, &mut self.flows[0]),
            FlowEnd::Take => (tag::FLOW_TAKE, &mut self.flows[1]),
        };
        let since_last = flow.id.wrapping_sub(std::mem::replace(last, flow.id)).cast_signed();
        let since = flow.time_ns.wrapping_sub(state.end_ns);
        self.append(tag, |bytes| {
            put_signed(bytes, since_last);
            put(bytes, u64::from(lane.0));
            put_signed(bytes, since);
        });
        self.seen(flow.time_ns, 0);
    }
}
