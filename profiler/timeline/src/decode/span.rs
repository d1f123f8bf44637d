//! Spans. Their table stands in `encode/span.rs`.

use super::Decoder;
use crate::encode::span::{
    DEEP, DEPTH_AT, DEVICE, INDEX, INDEX_NEXT, LONG, SAME_ITERATION, SAME_LANE, SHAPES, SHORT, start_lane,
};
use crate::encode::tag;
use crate::record::{DeviceTime, LaneId, NameId, Span, StreamId};
use crate::varint::{ROOM, Room, unzigzag};
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

/// The shapes of a block, by number.
#[derive(Debug)]
pub(super) struct Shapes {
    /// Those that have not been introduced have no flags.
    all: [Shape; SHAPES + 1],
    count: usize,
}

impl Default for Shapes {
    fn default() -> Self {
        Self { all: [Shape { flags: 0, depth: 0, local: 0, name: NameId(0) }; SHAPES + 1], count: 0 }
    }
}

impl Shapes {
    pub(super) fn clear(&mut self) {
        self.all.iter_mut().take(self.count).for_each(|shape| shape.flags = 0);
        self.count = 0;
    }
}

impl<V: Visit> Decoder<'_, '_, V> {
    /// Reads spans for as long as they are of the last one's lane, as most are: what would be looked up for each is at
    /// hand. At most `left` are left of the block; returns how many were read, and what follows.
    #[inline]
    pub(super) fn spans<'r>(&mut self, rest: &'r [u8], left: u32) -> Option<(u32, &'r [u8])> {
        let lane = usize::try_from(self.last_lane).ok().and_then(|lane| self.ids.lanes.get(lane));
        match lane {
            Some(lane) if !self.visit.wants(LaneId(*lane)) => self.run::<false>(rest, left),
            _ => self.run::<true>(rest, left),
        }
    }

    /// Those that are not wanted are passed by.
    #[inline]
    fn run<'r, const WANTED: bool>(&mut self, mut rest: &'r [u8], left: u32) -> Option<(u32, &'r [u8])> {
        let place = usize::try_from(self.last_lane).unwrap_or(usize::MAX);
        let (Some(state), Some(lane)) = (self.states.lanes.get_mut(place), self.ids.lanes.get(place)) else {
            return Some((0, rest));
        };
        let stream = stream(self.ids.streams, state.stream);
        let (lane, mut of_iteration, mut end_ns) = (LaneId(*lane), state.span_iteration, state.end_ns);
        let (shapes, next_index) = (&self.states.shapes.all, self.states.next_index.as_mut_slice());
        let mut count = 0;
        while count < left {
            let room: &[u8; ROOM] = rest.first_chunk()?;
            let Shape { flags, depth, local, name } = shapes[usize::from(room[0] & !tag::SPAN)];
            if room[0] < tag::SPAN || flags & SAME_LANE == 0 {
                break;
            }
            let mut input = Room::behind_tag(room);
            let lengths = input.byte();
            if flags & SAME_ITERATION == 0 {
                of_iteration = of_iteration.wrapping_add_signed(unzigzag(input.small()?));
            }
            let index = if flags & INDEX != 0 {
                let next = next_index.get_mut(local as usize)?;
                let index = if flags & INDEX_NEXT != 0 { *next } else { input.number()? };
                *next = index.wrapping_add(1);
                Some(index)
            } else {
                None
            };
            let (begin_ns, duration_ns, device) = times(&mut input, lengths, flags, end_ns, stream);
            end_ns = begin_ns.wrapping_add(duration_ns.cast_signed());
            if WANTED {
                let iteration = of_iteration.checked_sub(1);
                self.visit.span(Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device });
            }
            rest = rest.get(input.length..)?;
            count += 1;
        }
        (state.span_iteration, state.end_ns) = (of_iteration, end_ns);
        Some((count, rest))
    }

    /// Reads a span, and returns its length.
    #[inline(never)]
    pub(super) fn span(&mut self, room: &[u8; ROOM]) -> Option<usize> {
        let (tag, mut input) = (room[0], Room::behind_tag(room));
        let number = usize::from(tag & !tag::SPAN);
        let shape = if number < self.states.shapes.count {
            self.states.shapes.all[number]
        } else {
            let (shape, behind) = self.new_shape(tag, input)?;
            input = behind;
            shape
        };
        let flag = |flag: u8| shape.flags & flag != 0;
        let lengths = input.byte();
        let local = if flag(SAME_LANE) { self.last_lane } else { input.small()? };
        if local != self.last_lane {
            let known = |lane: u64| u32::try_from(lane).unwrap_or(u32::MAX);
            start_lane(&mut self.states.lanes, known(self.last_lane), known(local), self.shift_ns);
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
        let stream = stream(self.ids.streams, state.stream);
        let (begin_ns, duration_ns, device) = times(&mut input, lengths, shape.flags, state.end_ns, stream);
        state.end_ns = begin_ns.wrapping_add(duration_ns.cast_signed());
        let iteration = state.span_iteration.checked_sub(1);
        self.last_lane = local;
        let (name, depth) = (shape.name, shape.depth);
        self.visit.span(Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device });
        Some(input.length)
    }

    /// Reads a shape that stands in full, and numbers it if there are numbers left. Returns what follows, too.
    #[cold]
    fn new_shape<'r>(&mut self, tag: u8, mut input: Room<'r>) -> Option<(Shape, Room<'r>)> {
        if tag != tag::SPAN_NEW {
            return None;
        }
        let flags = input.byte();
        let local = u32::try_from(input.small()?).ok()?;
        let depth = match flags >> DEPTH_AT {
            DEEP => u8::try_from(input.small()?).ok()?,
            depth => depth,
        };
        let name = self.ids.names.get(local as usize).copied().map(NameId)?;
        let shape = Shape { flags, depth, local, name };
        let shapes = &mut self.states.shapes;
        if shapes.count < SHAPES {
            shapes.all[shapes.count] = shape;
            shapes.count += 1;
        }
        Some((shape, input))
    }
}

/// The stream of a lane's device times.
#[inline]
fn stream(ids: &[u32], stream: u32) -> Option<StreamId> {
    ids.get(stream.checked_sub(1)? as usize).copied().map(StreamId)
}

/// A span's times, which stand at its end.
#[inline]
fn times(
    input: &mut Room<'_>,
    lengths: u8,
    flags: u8,
    end_ns: i64,
    stream: Option<StreamId>,
) -> (i64, u64, Option<DeviceTime>) {
    let begin_ns = end_ns.wrapping_add(signed(short(input, lengths), lengths));
    let duration_ns = long(input, lengths >> 2);
    if flags & DEVICE == 0 {
        return (begin_ns, duration_ns, None);
    }
    let since = signed(long(input, lengths >> 4), lengths >> 4);
    let device = DeviceTime { begin_ns: begin_ns.wrapping_add(since), duration_ns: long(input, lengths >> 6), stream };
    (begin_ns, duration_ns, Some(device))
}

/// Bits of a number's length.
const CODE: u8 = 3;

/// A number of one of the lengths in `SHORT`.
#[inline]
fn short(input: &mut Room<'_>, code: u8) -> u64 {
    const MASKS: [u64; 4] = masks(SHORT);
    let code = usize::from(code & CODE);
    input.eight(SHORT[code]) & MASKS[code]
}

/// A number of one of the lengths in `LONG`.
#[inline]
fn long(input: &mut Room<'_>, code: u8) -> u64 {
    const MASKS: [u64; 4] = masks(LONG);
    let code = usize::from(code & CODE);
    input.eight(LONG[code]) & MASKS[code]
}

/// The bits of numbers of some lengths.
const fn masks(lengths: [usize; 4]) -> [u64; 4] {
    let [a, b, c, d] = lengths;
    [u64::MAX >> (64 - 8 * a), u64::MAX >> (64 - 8 * b), u64::MAX >> (64 - 8 * c), u64::MAX >> (64 - 8 * d)]
}

/// A number as the signed one that it stands for, by its length.
#[inline]
fn signed(number: u64, code: u8) -> i64 {
    if code & CODE == 2 { unzigzag(number) } else { number.cast_signed() }
}
