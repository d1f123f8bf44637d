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

/// What is alike in the spans that follow each other on a lane, and what each is a difference to.
struct Of {
    lane: LaneId,
    iteration: Option<u64>,
    stream: Option<StreamId>,
    end_ns: i64,
}

impl Of {
    /// The span whose numbers these bytes begin with, and where it ends.
    #[inline(always)]
    fn span(&mut self, shape: &Shape, room: &[u8; ROOM], next_index: &mut [u64]) -> Option<(Span, usize)> {
        let Shape { layout, local, name, flags, depth } = *shape;
        let [gap, duration_ns, device_begin, device_duration] = layout.read(room);
        let begin_ns = self.end_ns.wrapping_add(gap.cast_signed());
        self.end_ns = begin_ns.wrapping_add(duration_ns.cast_signed());
        let mut length = usize::from(layout.length);
        let index = if flags & INDEX != 0 {
            let next = next_index.get_mut(local as usize)?;
            let mut index = if flags & ZERO != 0 { 0 } else { *next };
            if flags & EXPLICIT != 0 {
                let mut behind = Room::at(room, length);
                (index, length) = (behind.number()?, behind.length);
            }
            *next = index.wrapping_add(1);
            Some(index)
        } else {
            None
        };
        let device = (flags & DEVICE != 0).then(|| DeviceTime {
            begin_ns: begin_ns.wrapping_add(device_begin.cast_signed()),
            duration_ns: device_duration,
            stream: self.stream,
        });
        let (lane, iteration) = (self.lane, self.iteration);
        Some((Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device }, length))
    }
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
        let lane = usize::try_from(self.last_lane).ok().and_then(|lane| self.ids.lanes.get(lane))?;
        if self.visit.wants(LaneId(*lane)) { self.run::<true>(tags, rest) } else { self.run::<false>(tags, rest) }
    }

    /// Those that are not wanted are passed by.
    #[inline]
    fn run<'r, const WANTED: bool>(&mut self, tags: &[u8], mut rest: &'r [u8]) -> Option<(usize, &'r [u8])> {
        let place = usize::try_from(self.last_lane).ok()?;
        let lane = self.ids.lanes.get(place).copied().map(LaneId)?;
        let state = self.states.lanes.get_mut(place)?;
        let stream = state.stream.checked_sub(1).and_then(|stream| id(self.ids.streams, u64::from(stream)));
        let (iteration, stream) = (state.span_iteration.checked_sub(1), stream.map(StreamId));
        let mut of = Of { lane, iteration, stream, end_ns: state.end_ns };
        let (shapes, next_index) = (&self.states.shapes, self.states.next_index.as_mut_slice());
        let known = shapes.count;
        let mut count = 0;
        for tag in tags {
            let number = usize::from(tag.wrapping_sub(tag::SPAN));
            if number >= known {
                break;
            }
            let (span, length) = of.span(&shapes.all[number % (SHAPES + 1)], rest.first_chunk()?, next_index)?;
            // A room is longer than any span, so this needs no look.
            rest = rest.get(length & (LONGER - 1)..)?;
            if WANTED {
                self.visit.span(span);
            }
            count += 1;
        }
        state.end_ns = of.end_ns;
        Some((count, rest))
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
