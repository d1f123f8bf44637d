//! The records of version 1 that later versions write otherwise.
//!
//! | tag | record | fields |
//! |---|---|---|
//! | 01-03 | texts | as in `encode.rs`, but plain (length, bytes), and anywhere before their first use |
//! | 80-ff | span (bits below) | name; lane unless L; ±iteration+1 since that of the lane's last span, unless N; index if I; ±begin since the lane; duration; if D: ±device begin since begin, device duration |
//! | 04-07 | iteration | lane, kind byte, ±number since the lane's, ±begin since the lane, duration; tag bit 0: CPU time; bit 1: tokens |
//! | 08 | sample, float | counter, ±time since the last sample, 8 bytes IEEE 754 |
//! | 09 | sample, whole | counter, ±time, ±value |
//! | 0a, 0b | flow put, take | ±id since the last flow, lane, ±time since the last flow |
//!
//! A span's tag: bit 6 I, it has an index; bit 5 D, it has a device time; bit 4 L, same lane as the last span; bit 3 N, same
//! iteration as the last span of its lane; bits 2-0 depth, where 7 means that it follows the tag as a varint.

use super::{Decoder, id};
use crate::encode::{KINDS, tag};
use crate::record::{CounterId, DeviceTime, Flow, FlowEnd, Iteration, LaneId, NameId, Sample, Span};
use crate::visit::Visit;

const SPAN: u8 = 0x80;
const INDEX: u8 = 0x40;
const DEVICE: u8 = 0x20;
const SAME_LANE: u8 = 0x10;
const SAME_ITERATION: u8 = 0x08;
const DEPTH: u8 = 0x07;
const SAMPLE_FLOAT: u8 = 0x08;
const SAMPLE_WHOLE: u8 = 0x09;

impl<V: Visit> Decoder<'_, '_, V> {
    pub(super) fn old_record(&mut self, tag: u8) -> Option<()> {
        match tag {
            SPAN.. => self.old_span(tag),
            SAMPLE_FLOAT | SAMPLE_WHOLE => self.old_sample(),
            tag::ITERATION..=tag::ITERATION_LAST => self.old_iteration(),
            tag::FLOW_PUT | tag::FLOW_TAKE => self.old_flow(),
            tag::NAME | tag::LANE | tag::COUNTER => self.found.take_plain(&mut self.input),
            _ => self.rare(tag),
        }
    }

    fn old_span(&mut self, tag: u8) -> Option<()> {
        let input = &mut self.input;
        input.byte()?;
        let flag = |flag: u8| tag & flag != 0;
        let depth = match tag & DEPTH {
            DEPTH => u8::try_from(input.number()?).ok()?,
            depth => depth,
        };
        let name = id(self.ids.names, input.number()?).map(NameId)?;
        let local = if flag(SAME_LANE) { self.last_lane } else { input.number()? };
        let state = self.states.lanes.get_mut(usize::try_from(local).ok()?)?;
        let lane = id(self.ids.lanes, local).map(LaneId)?;
        if !flag(SAME_ITERATION) {
            state.span_iteration = state.span_iteration.wrapping_add_signed(input.signed()?);
        }
        let index = if flag(INDEX) { Some(input.number()?) } else { None };
        let begin_ns = state.end_ns.wrapping_add(input.signed()?);
        let duration_ns = input.number()?;
        let device = if flag(DEVICE) {
            let begin_ns = begin_ns.wrapping_add(input.signed()?);
            Some(DeviceTime { begin_ns, duration_ns: input.number()?, stream: None })
        } else {
            None
        };
        state.end_ns = begin_ns.wrapping_add(duration_ns.cast_signed());
        let iteration = state.span_iteration.checked_sub(1);
        self.last_lane = local;
        self.visit.span(Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device });
        Some(())
    }

    fn old_sample(&mut self) -> Option<()> {
        let input = &mut self.input;
        let tag = input.byte()?;
        let counter = id(self.ids.counters, input.number()?).map(CounterId)?;
        let time_ns = self.sample_ns.wrapping_add(input.signed()?);
        let value = if tag == SAMPLE_WHOLE {
            input.signed()? as f64
        } else {
            f64::from_le_bytes(*input.bytes(8)?.first_chunk()?)
        };
        self.sample_ns = time_ns;
        self.visit.sample(Sample { counter, time_ns, value });
        Some(())
    }

    fn old_iteration(&mut self) -> Option<()> {
        let input = &mut self.input;
        let tag = input.byte()?;
        let local = input.number()?;
        let lane = id(self.ids.lanes, local).map(LaneId)?;
        let kind = *KINDS.get(usize::from(input.byte()?))?;
        let state = self.states.lanes.get_mut(usize::try_from(local).ok()?)?;
        let number = state.iteration.wrapping_add_signed(input.signed()?);
        let begin_ns = state.end_ns.wrapping_add(input.signed()?);
        let duration_ns = input.number()?;
        let cpu_ns = if tag & tag::ITERATION_CPU != 0 { Some(input.number()?) } else { None };
        let tokens = if tag & tag::ITERATION_TOKENS != 0 { Some(input.number()?) } else { None };
        (state.end_ns, state.iteration) = (begin_ns.wrapping_add(duration_ns.cast_signed()), number);
        self.visit.iteration(Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens });
        Some(())
    }

    fn old_flow(&mut self) -> Option<()> {
        let end = if self.input.byte()? == tag::FLOW_PUT { FlowEnd::Put } else { FlowEnd::Take };
        let number = self.flows[0].wrapping_add_signed(self.input.signed()?);
        let lane = id(self.ids.lanes, self.input.number()?).map(LaneId)?;
        let time_ns = self.old_flow_ns.wrapping_add(self.input.signed()?);
        (self.flows[0], self.old_flow_ns) = (number, time_ns);
        self.visit.flow(Flow { id: number, end, lane, time_ns });
        Some(())
    }
}
