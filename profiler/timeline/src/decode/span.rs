//! Spans. Their table stands in `encode/span.rs`.

use super::{Decoder, States, id};
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
    /// Whether there has been one with device times.
    on_device: bool,
}

impl Default for Shapes {
    fn default() -> Self {
        Self { all: [Shape::default(); SHAPES + 1], count: 0, on_device: false }
    }
}

impl Shapes {
    pub(super) fn clear(&mut self) {
        (self.count, self.on_device) = (0, false);
    }
}

/// Spans that follow each other on a lane, up to a tag that is none of a known shape, or to the payload's end. Where no
/// shape has device times they are not looked for.
struct Run<'s, 'r, const ON_DEVICE: bool> {
    tags: &'s [u8],
    rest: &'r [u8],
    shapes: &'s [Shape],
    next_index: &'s mut [u64],
    lane: LaneId,
    iteration: Option<u64>,
    stream: Option<StreamId>,
    end_ns: i64,
}

impl<const ON_DEVICE: bool> Iterator for Run<'_, '_, ON_DEVICE> {
    type Item = Span;

    #[inline(always)]
    fn next(&mut self) -> Option<Span> {
        let (tag, tags) = self.tags.split_first()?;
        let shape = self.shapes.get(usize::from(tag.wrapping_sub(tag::SPAN)))?;
        let Shape { local, name, flags, depth, .. } = *shape;
        let room: &[u8; ROOM] = self.rest.first_chunk()?;
        let [gap, duration_ns, device_begin, device_duration] = shape.layout.read::<ON_DEVICE>(room);
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
        let device = (ON_DEVICE && flags & DEVICE != 0).then(|| DeviceTime {
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
    /// The last two only on a device: else they are 0.
    #[inline(always)]
    fn read<const ON_DEVICE: bool>(&self, room: &[u8; ROOM]) -> [u64; 4] {
        let number = |at: u8, mask: u64| {
            room[usize::from(at)..].first_chunk().map_or(0, |eight| u64::from_le_bytes(*eight) & mask)
        };
        let ([second, third, fourth], [a, b, c, d]) = (self.places, self.masks);
        let [gap_bias, device_bias] = self.bias;
        let (gap, duration) = (number(0, a).wrapping_sub(gap_bias), number(second, b));
        if ON_DEVICE {
            [gap, duration, number(third, c).wrapping_sub(device_bias), number(fourth, d)]
        } else {
            [gap, duration, 0, 0]
        }
    }
}

impl<V: Visit> Decoder<'_, '_, V> {
    /// Reads spans for as long as they follow each other. Returns how many those were, and what follows them.
    #[inline]
    pub(super) fn spans<'r>(&mut self, tags: &[u8], rest: &'r [u8]) -> Option<(usize, &'r [u8])> {
        if self.states.shapes.on_device { self.run::<true>(tags, rest) } else { self.run::<false>(tags, rest) }
    }

    #[inline(never)]
    fn run<'r, const ON_DEVICE: bool>(&mut self, tags: &[u8], rest: &'r [u8]) -> Option<(usize, &'r [u8])> {
        let (mut run, state_end_ns, visit) = self.begin_run::<ON_DEVICE>(tags, rest)?;
        if visit.wants(run.lane) {
            visit.spans(run.lane, &mut run);
        }
        // Those that are not wanted are passed by.
        while run.next().is_some() {}
        *state_end_ns = run.end_ns;
        Some((tags.len() - run.tags.len(), run.rest))
    }

    /// What spans of the lane are read with, where its end is noted behind them, and who takes them.
    #[inline(always)]
    fn begin_run<'s, 'r, const ON_DEVICE: bool>(
        &'s mut self,
        tags: &'s [u8],
        rest: &'r [u8],
    ) -> Option<(Run<'s, 'r, ON_DEVICE>, &'s mut i64, &'s mut V)> {
        let place = usize::try_from(self.last_lane).ok()?;
        let lane = self.ids.lanes.get(place).copied().map(LaneId)?;
        let States { lanes, shapes, next_index, .. } = &mut *self.states;
        let state = lanes.get_mut(place)?;
        let stream = state.stream.checked_sub(1).and_then(|stream| id(self.ids.streams, u64::from(stream)));
        let (iteration, stream) = (state.span_iteration.checked_sub(1), stream.map(StreamId));
        let shapes = shapes.all.get(..shapes.count)?;
        let run = Run { tags, rest, shapes, next_index, lane, iteration, stream, end_ns: state.end_ns };
        Some((run, &mut state.end_ns, &mut *self.visit))
    }

    /// Reads the shape of the next span, and that span.
    #[inline(never)]
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
        shapes.on_device |= flags & DEVICE != 0;
        let count = std::mem::replace(&mut shapes.count, SHAPES + 1);
        let tags = [tag::SPAN + number as u8];
        let (mut run, state_end_ns, visit) = self.begin_run::<true>(&tags, rest)?;
        let span = run.next()?;
        let rest = run.rest;
        *state_end_ns = run.end_ns;
        if visit.wants(span.lane) {
            visit.span(span);
        }
        self.states.shapes.count = if number < SHAPES { number + 1 } else { count };
        Some(rest)
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
