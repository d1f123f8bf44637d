//! Spans. Their table stands in `encode/span.rs`.

use super::{Decoder, id};
use crate::encode::shape::{DEVICE, EXPLICIT, INDEX, Layout, SHAPES, ZERO};
use crate::encode::span::start_lane;
use crate::encode::tag;
use crate::record::{DeviceTime, LaneId, NameId, Span, StreamId};
use crate::varint::{ROOM, Room};
use crate::visit::Visit;

/// More than the bytes of any span, less than a room's; a power of two.
const LONGER: usize = 64;

/// What is alike in many spans.
#[derive(Clone, Copy, Debug, Default)]
struct Shape {
    layout: Layout,
    /// The block's id, and the timeline's.
    local: u32,
    name: NameId,
    flags: u8,
    depth: u8,
}

/// The shapes of a block, by number.
#[derive(Debug)]
pub(super) struct Shapes {
    all: [Shape; SHAPES + 1],
    count: usize,
}

impl Default for Shapes {
    fn default() -> Self {
        Self { all: [Shape::default(); SHAPES + 1], count: 0 }
    }
}

impl Shapes {
    pub(super) fn clear(&mut self) {
        self.count = 0;
    }
}

/// Spans that follow each other on a lane, up to a tag that is none of a known shape, or to the payload's end.
struct Run<'s, 'r> {
    tags: &'s [u8],
    rest: &'r [u8],
    shapes: &'s [Shape],
    next_index: &'s mut [u64],
    lane: LaneId,
    iteration: Option<u64>,
    stream: Option<StreamId>,
    end_ns: i64,
}

impl Iterator for Run<'_, '_> {
    type Item = Span;

    #[inline(always)]
    fn next(&mut self) -> Option<Span> {
        let (tag, tags) = self.tags.split_first()?;
        let shape = self.shapes.get(usize::from(tag.wrapping_sub(tag::SPAN)))?;
        let Shape { local, name, flags, depth, .. } = *shape;
        let room: &[u8; ROOM] = self.rest.first_chunk()?;
        let [gap, duration_ns, device_begin, device_duration] = shape.layout.read(room);
        let begin_ns = self.end_ns.wrapping_add(gap.cast_signed());
        let mut length = usize::from(shape.layout.length);
        let index = if flags & INDEX != 0 {
            let next = self.next_index.get_mut(local as usize)?;
            let mut index = if flags & ZERO != 0 { 0 } else { *next };
            if flags & EXPLICIT != 0 {
                (index, length) = explicit(room, length)?;
            }
            *next = index.wrapping_add(1);
            Some(index)
        } else {
            None
        };
        // A room is longer than any span, so this needs no look.
        self.rest = self.rest.get(length & (LONGER - 1)..)?;
        self.tags = tags;
        self.end_ns = begin_ns.wrapping_add(duration_ns.cast_signed());
        let device = (flags & DEVICE != 0).then(|| DeviceTime {
            begin_ns: begin_ns.wrapping_add(device_begin.cast_signed()),
            duration_ns: device_duration,
            stream: self.stream,
        });
        let (lane, iteration) = (self.lane, self.iteration);
        Some(Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device })
    }
}

/// The index that stands behind the numbers, and where it ends.
#[cold]
#[inline(never)]
fn explicit(room: &[u8; ROOM], length: usize) -> Option<(u64, usize)> {
    let mut behind = Room::at(room, length);
    Some((behind.number()?, behind.length))
}

impl Layout {
    #[inline(always)]
    fn read(&self, room: &[u8; ROOM]) -> [u64; 4] {
        let number = |at: u8, mask: u64| {
            room[usize::from(at)..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight) & mask)
        };
        let ([second, third, fourth], [a, b, c, d]) = (self.places, self.masks);
        let (gap, device_begin) = (number(0, a), number(third, c));
        let [gap_bias, device_bias] = self.bias;
        [gap.wrapping_sub(gap_bias), number(second, b), device_begin.wrapping_sub(device_bias), number(fourth, d)]
    }
}

impl<V: Visit> Decoder<'_, '_, V> {
    /// Reads spans for as long as they follow each other. Returns how many those were, and what follows them.
    #[inline]
    pub(super) fn spans<'r>(&mut self, tags: &[u8], rest: &'r [u8]) -> Option<(usize, &'r [u8])> {
        let place = usize::try_from(self.last_lane).ok()?;
        let lane = self.ids.lanes.get(place).copied().map(LaneId)?;
        let state = self.states.lanes.get_mut(place)?;
        let stream = state.stream.checked_sub(1).and_then(|stream| id(self.ids.streams, u64::from(stream)));
        let (iteration, stream) = (state.span_iteration.checked_sub(1), stream.map(StreamId));
        let shapes = self.states.shapes.all.get(..self.states.shapes.count)?;
        let (next_index, end_ns) = (self.states.next_index.as_mut_slice(), state.end_ns);
        let mut run = Run { tags, rest, shapes, next_index, lane, iteration, stream, end_ns };
        if self.visit.wants(lane) {
            self.visit.spans(lane, &mut run);
        }
        // Those that are not wanted are passed by.
        while run.next().is_some() {}
        state.end_ns = run.end_ns;
        Some((tags.len() - run.tags.len(), run.rest))
    }

    /// Reads the shape of the next span, and that span.
    #[cold]
    pub(super) fn new_span<'r>(&mut self, tag: u8, rest: &'r [u8]) -> Option<&'r [u8]> {
        let [flags, depth, lengths] = *rest.first_chunk()?;
        let mut input = Room::at(rest.first_chunk()?, 3);
        let local = u32::try_from(input.small()?).ok()?;
        let name = id(self.ids.names, u64::from(local)).map(NameId)?;
        let shape = Shape { layout: Layout::of(lengths, flags), local, name, flags, depth };
        let rest = rest.get(input.length..)?;
        let shapes = &mut self.states.shapes;
        // Read as the others are: with the last number, which no other shape has.
        let number = if tag == tag::SPAN_NEW && shapes.count < SHAPES { shapes.count } else { SHAPES };
        if tag == tag::SPAN_NEW && number == SHAPES {
            return None;
        }
        shapes.all[number] = shape;
        let count = std::mem::replace(&mut shapes.count, SHAPES + 1);
        let found = self.spans(&[tag::SPAN + number as u8], rest);
        self.states.shapes.count = if number < SHAPES { number + 1 } else { count };
        found.and_then(|(count, rest)| (count == 1).then_some(rest))
    }

    /// The lane, the iteration, the stream of the next spans.
    pub(super) fn enter(&mut self) -> Option<()> {
        let (local, since, stream) = (self.input.small()?, self.input.signed()?, self.input.small()?);
        id(self.ids.lanes, local)?;
        if local != self.last_lane {
            let known = |lane: u64| u32::try_from(lane).unwrap_or(u32::MAX);
            start_lane(&mut self.states.lanes, known(self.last_lane), known(local), self.shift_ns);
            self.last_lane = local;
        }
        let state = self.states.lanes.get_mut(usize::try_from(local).ok()?)?;
        state.span_iteration = state.span_iteration.wrapping_add_signed(since);
        if let Some(stream) = stream.checked_sub(1) {
            if let Some(stream) = stream.checked_sub(1) {
                id(self.ids.streams, stream)?;
            }
            state.stream = u32::try_from(stream).ok()?;
        }
        Some(())
    }
}
