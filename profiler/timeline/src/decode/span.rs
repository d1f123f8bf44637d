//! Spans. Their table stands in `encode/span.rs`.

use super::Decoder;
use crate::encode::span::{
    DEEP, DEPTH_AT, DEVICE, INDEX, INDEX_NEXT, LONG, SAME_ITERATION, SAME_LANE, SHAPES, SHORT, start_lane,
};
use crate::encode::tag;
use crate::record::{DeviceTime, LaneId, NameId, Span};
use crate::varint::{Input, unzigzag};
use crate::visit::Visit;

/// What is alike in many spans.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    flags: u8,
    depth: u8,
    /// The block's id, and the timeline's.
    local: u32,
    name: NameId,
}

impl<V: Visit> Decoder<'_, '_, V> {
    #[inline]
    pub(super) fn span(&mut self) -> Option<()> {
        let mut input = self.input;
        let tag = input.byte()?;
        let shape = match self.states.shapes.get(usize::from(tag & !tag::SPAN)) {
            Some(shape) => *shape,
            None => self.new_shape(tag, &mut input)?,
        };
        let flag = |flag: u8| shape.flags & flag != 0;
        let lengths = usize::from(input.byte()?);
        let local = if flag(SAME_LANE) { self.last_lane } else { input.small()? };
        if local != self.last_lane {
            let known = |lane: u64| u32::try_from(lane).unwrap_or(u32::MAX);
            start_lane(&mut self.states.lanes, known(self.last_lane), known(local));
        }
        let lane = usize::try_from(local).ok()?;
        let state = self.states.lanes.get_mut(lane)?;
        let lane = self.ids.lanes.get(lane).copied().map(LaneId)?;
        if !flag(SAME_ITERATION) {
            state.span_iteration = state.span_iteration.wrapping_add_signed(input.signed()?);
        }
        let index = if flag(INDEX) {
            let next = self.states.next_index.get_mut(shape.local as usize)?;
            let index = if flag(INDEX_NEXT) { *next } else { input.number()? };
            *next = index.wrapping_add(1);
            Some(index)
        } else {
            None
        };
        let gap = input.fixed(SHORT[lengths & 3])?;
        let begin_ns = state.end_ns.wrapping_add(if lengths & 3 == 2 { unzigzag(gap) } else { gap.cast_signed() });
        let duration_ns = input.fixed(LONG[lengths >> 2 & 3])?;
        let device = if flag(DEVICE) {
            let since = input.fixed(LONG[lengths >> 4 & 3])?;
            let since = if lengths >> 4 & 3 == 2 { unzigzag(since) } else { since.cast_signed() };
            let duration_ns = input.fixed(LONG[lengths >> 6])?;
            Some(DeviceTime { begin_ns: begin_ns.wrapping_add(since), duration_ns })
        } else {
            None
        };
        state.end_ns = begin_ns.wrapping_add(duration_ns.cast_signed());
        let iteration = state.span_iteration.checked_sub(1);
        (self.last_lane, self.input) = (local, input);
        let (name, depth) = (shape.name, shape.depth);
        self.visit.span(Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device });
        Some(())
    }

    /// Reads a shape that stands in full, and numbers it if there are numbers left.
    #[cold]
    fn new_shape(&mut self, tag: u8, input: &mut Input<'_>) -> Option<Shape> {
        if tag != tag::SPAN_NEW {
            return None;
        }
        let flags = input.byte()?;
        let local = u32::try_from(input.small()?).ok()?;
        let depth = match flags >> DEPTH_AT {
            DEEP => u8::try_from(input.small()?).ok()?,
            depth => depth,
        };
        let name = self.ids.names.get(local as usize).copied().map(NameId)?;
        let shape = Shape { flags, depth, local, name };
        if self.states.shapes.len() < SHAPES {
            self.states.shapes.push(shape);
        }
        Some(shape)
    }
}
