//! Iterations and hand-offs. Their bytes: the table in `encode.rs`.

use super::{Encoder, KINDS, end, room, tag};
use crate::record::{Flow, FlowEnd, Iteration, LaneId};
use crate::varint::Record;

impl Encoder {
    pub(crate) fn iteration(&mut self, iteration: &Iteration, lane: LaneId) {
        let Some(state) = self.lanes.get_mut(lane.0 as usize) else { return };
        let cpu = if iteration.cpu_ns.is_some() { tag::ITERATION_CPU } else { 0 };
        let tokens = if iteration.tokens.is_some() { tag::ITERATION_TOKENS } else { 0 };
        let mut record = Record::new(room(&mut self.bytes, self.used), tag::ITERATION | cpu | tokens);
        let kind = KINDS.iter().position(|kind| *kind == iteration.kind).unwrap_or(0) as u64;
        let (number, begin_ns) = state.next_iteration();
        let end_ns = end(iteration.begin_ns, iteration.duration_ns);
        record.number(u64::from(lane.0) << 3 | kind);
        record.signed_small(iteration.number.wrapping_sub(number).cast_signed());
        record.signed(iteration.begin_ns.wrapping_sub(begin_ns));
        record.signed(end_ns.wrapping_sub(state.end_ns));
        for value in [iteration.cpu_ns, iteration.tokens].into_iter().flatten() {
            record.number(value);
        }
        let length = record.length;
        (state.end_ns, state.iteration, state.iteration_end_ns) = (end_ns, iteration.number, Some(end_ns));
        self.seen(iteration.begin_ns, iteration.duration_ns);
        self.took(length);
    }

    pub(crate) fn flow(&mut self, flow: &Flow, lane: LaneId) {
        let Some(state) = self.lanes.get(lane.0 as usize) else { return };
        let (tag, last) = match flow.end {
            FlowEnd::Put => (tag::FLOW_PUT, &mut self.flows[0]),
            FlowEnd::Take => (tag::FLOW_TAKE, &mut self.flows[1]),
        };
        let mut record = Record::new(room(&mut self.bytes, self.used), tag);
        record.signed(flow.id.wrapping_sub(*last).cast_signed());
        record.small(lane.0);
        record.signed(flow.time_ns.wrapping_sub(state.end_ns));
        let length = record.length;
        *last = flow.id;
        self.seen(flow.time_ns, 0);
        self.took(length);
    }
}
