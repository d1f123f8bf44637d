//! Iterations and hand-offs. Their table stands in `encode.rs`.

use super::{Decoder, id};
use crate::encode::iteration::KIND_AT;
use crate::encode::{KINDS, tag};
use crate::record::{Flow, FlowEnd, Iteration, LaneId};
use crate::varint::{Room, unzigzag};
use crate::visit::Visit;

/// The bits of numbers of 1, 2, 4 and 8 bytes.
const MASKS: [u64; 4] = [0xff, 0xffff, 0xffff_ffff, u64::MAX];

impl<V: Visit> Decoder<'_, '_, V> {
    #[inline(never)]
    pub(super) fn iteration<'r>(&mut self, tag: u8, rest: &'r [u8]) -> Option<&'r [u8]> {
        let mut input = Room::at(rest.first_chunk()?, 0);
        let lengths = input.eight(2);
        let mut number = |place: usize| {
            let code = (lengths >> (2 * place) & 3) as usize;
            input.eight(1 << code) & MASKS[code]
        };
        let [local, since, begin, end] = [number(0), number(1), number(2), number(3)];
        let cpu_ns = (tag & tag::ITERATION_CPU != 0).then(|| number(4));
        let tokens = (tag & tag::ITERATION_TOKENS != 0).then(|| number(5));
        let lane = id(self.ids.lanes, local).map(LaneId)?;
        let kind = *KINDS.get((lengths >> KIND_AT & 7) as usize)?;
        let state = self.states.lanes.get_mut(usize::try_from(local).ok()?)?;
        let (number, begin_ns) = state.next_iteration();
        let number = number.wrapping_add_signed(unzigzag(since));
        let begin_ns = begin_ns.wrapping_add(unzigzag(begin));
        let end_ns = state.end_ns.wrapping_add(unzigzag(end));
        let duration_ns = end_ns.wrapping_sub(begin_ns).cast_unsigned();
        state.iteration_ended(number, end_ns);
        let rest = rest.get(input.length..)?;
        self.visit.iteration(Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens });
        Some(rest)
    }

    pub(super) fn flow(&mut self, end: FlowEnd) -> Option<()> {
        let (since_last, local, since) = (self.input.signed()?, self.input.number()?, self.input.signed()?);
        let last = &mut self.flows[usize::from(end == FlowEnd::Take)];
        *last = last.wrapping_add_signed(since_last);
        let lane = id(self.ids.lanes, local).map(LaneId)?;
        let time_ns = self.states.lanes.get(usize::try_from(local).ok()?)?.end_ns.wrapping_add(since);
        self.visit.flow(Flow { id: *last, end, lane, time_ns });
        Some(())
    }
}
