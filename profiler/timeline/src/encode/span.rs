//! Spans, the records that there are most of: the tag says what kind of span it is, a byte how long the numbers are.
//!
//! What is alike in most spans of a name is its *shape*: flags, name, depth. A shape is written in full at its first use in
//! a block (tag ff), and numbered from 0 in that order; tags 80-fe are the numbers. Shapes beyond the 127th have none.
//!
//! | part | bytes | what |
//! |---|---|---|
//! | tag | 1 | 80 + number of the shape, or ff: flags byte with the depth in bits 5-7, name; if those are 7, the depth as a varint |
//! | lengths | 1 | bits 0-1 gap, 2-3 duration, 4-5 device begin, 6-7 device duration: places in the lists below |
//! | lane | varint | unless flag L (bit 0): same as the last span's |
//! | iteration | ±varint | iteration+1 since that of the lane's last span; unless flag N (bit 1): the same |
//! | index | varint | if flag I (bit 2), unless flag S (bit 3): one more than the name's last one in this block (the first: 0) |
//! | gap | 1, 2, 4, 8 | begin since the lane (if that is 0: since the lane of the last span); signed if 4 or 8 bytes (4: zigzag) |
//! | duration | 2, 3, 4, 8 | |
//! | device begin | 2, 3, 4, 8 | if flag D (bit 4): since begin; signed if 4 or 8 bytes (4: zigzag) |
//! | device duration | 2, 3, 4, 8 | if flag D |

use super::{Encoder, LaneState, end, room, tag};
use crate::record::{LaneId, NameId, Span, StreamId};
use crate::varint::{ROOM, Record, zigzag};

pub(crate) const SAME_LANE: u8 = 0x01;
pub(crate) const SAME_ITERATION: u8 = 0x02;
pub(crate) const INDEX: u8 = 0x04;
pub(crate) const INDEX_NEXT: u8 = 0x08;
pub(crate) const DEVICE: u8 = 0x10;
/// Where the depth stands in the flags byte, and the depth that says that it follows.
pub(crate) const DEPTH_AT: u32 = 5;
pub(crate) const DEEP: u8 = 7;
/// Sets of flags.
const FLAGS: usize = 32;
/// Shapes that have numbers.
pub(crate) const SHAPES: usize = 127;
/// Lengths of the gap.
pub(crate) const SHORT: [usize; 4] = [1, 2, 4, 8];
/// Lengths of the others.
pub(crate) const LONG: [usize; 4] = [2, 3, 4, 8];

/// The shapes of a block.
#[derive(Debug, Default)]
pub(crate) struct Shapes {
    names: Vec<Name>,
    count: u8,
}

/// What a block knows of a name.
#[derive(Clone, Copy, Debug)]
struct Name {
    /// By flags: the tag of the shape, and its depth. `NEW`: none.
    shapes: [(u8, u8); FLAGS],
    next_index: u64,
}

const NEW: u8 = tag::SPAN_NEW;

impl Shapes {
    pub(super) fn clear(&mut self) {
        self.names.clear();
        self.count = 0;
    }

    #[inline]
    fn name(&mut self, name: NameId) -> &mut Name {
        let place = name.0 as usize;
        if place >= self.names.len() {
            self.names.resize(place + 1, Name { shapes: [(NEW, 0); FLAGS], next_index: 0 });
        }
        &mut self.names[place]
    }

    /// Writes a shape in full, and numbers it if there are numbers left. The record goes through by value, so that it can
    /// stay in registers.
    #[cold]
    fn introduce<'a>(&mut self, mut record: Record<'a>, name: NameId, flags: u8, depth: u8) -> Record<'a> {
        let shallow = depth.min(DEEP);
        record.byte(flags | shallow << DEPTH_AT);
        record.small(name.0);
        if shallow == DEEP {
            record.small(u32::from(depth));
        }
        if usize::from(self.count) < SHAPES {
            let tag = tag::SPAN | self.count;
            self.count += 1;
            self.name(name).shapes[usize::from(flags) % FLAGS] = (tag, depth);
        }
        record
    }
}

impl Encoder {
    /// Says which stream the device times of a lane's next spans are of, if that has changed.
    #[inline]
    fn on_stream(&mut self, lane: LaneId, stream: Option<StreamId>) {
        let stream = stream.map_or(0, |stream| stream.0 + 1);
        match self.lanes.get_mut(lane.0 as usize) {
            Some(state) if state.stream != stream => state.stream = stream,
            _ => return,
        }
        self.numbers(tag::ON_STREAM, &[u64::from(lane.0), u64::from(stream)]);
    }

    #[inline]
    pub(crate) fn span(&mut self, span: &Span, name: NameId, lane: LaneId, stream: Option<StreamId>) {
        if span.device.is_some() {
            self.on_stream(lane, stream);
        }
        if self.last_lane != lane.0 {
            start_lane(&mut self.lanes, self.last_lane, lane.0, 0);
        }
        let Some(state) = self.lanes.get_mut(lane.0 as usize) else { return };
        let iteration = span.iteration.map_or(0, |n| n.wrapping_add(1));
        let (same_lane, same_iteration) = (self.last_lane == lane.0, state.span_iteration == iteration);
        let known = self.shapes.name(name);
        let mut flags = (u8::from(same_lane) * SAME_LANE) | (u8::from(same_iteration) * SAME_ITERATION);
        flags |= u8::from(span.device.is_some()) * DEVICE;
        if let Some(index) = span.index {
            flags |= INDEX | (u8::from(index == known.next_index) * INDEX_NEXT);
            known.next_index = index.wrapping_add(1);
        }
        let (shape, depth) = known.shapes[usize::from(flags) % FLAGS];
        let shape = if depth == span.depth { shape } else { NEW };
        let mut record = Record::new(room(&mut self.bytes, self.used), shape);
        if shape == NEW {
            record = self.shapes.introduce(record, name, flags, span.depth);
        }
        let (gap, gap_code) = gap(span.begin_ns.wrapping_sub(state.end_ns));
        let duration_code = length(span.duration_ns);
        let (device, device_code) = match span.device {
            Some(device) => {
                let (begin, code) = offset(device.begin_ns.wrapping_sub(span.begin_ns));
                let duration_code = length(device.duration_ns);
                (Some((begin, code, device.duration_ns, duration_code)), code << 4 | duration_code << 6)
            }
            None => (None, 0),
        };
        record.byte((gap_code | duration_code << 2 | device_code) as u8);
        if !same_lane {
            record.small(lane.0);
        }
        if !same_iteration {
            record.signed_small(iteration.wrapping_sub(state.span_iteration).cast_signed());
        }
        if let Some(index) = span.index.filter(|_| flags & INDEX_NEXT == 0) {
            record.number(index);
        }
        record.fixed(gap, SHORT[gap_code]);
        record.fixed(span.duration_ns, LONG[duration_code]);
        if let Some((begin, code, duration, duration_code)) = device {
            record.fixed(begin, LONG[code]);
            record.fixed(duration, LONG[duration_code]);
        }
        let length = record.length;
        (state.end_ns, state.span_iteration) = (end(span.begin_ns, span.duration_ns), iteration);
        self.last_lane = lane.0;
        self.seen(span.begin_ns, span.duration_ns);
        self.took(length);
    }
}

/// A lane's first span is a difference to the last end of the lane before it: blocks are short, and clocks show days.
/// `zero_ns` is where lanes begin.
pub(crate) fn start_lane(lanes: &mut [LaneState], before: u32, lane: u32, zero_ns: i64) {
    let before = lanes.get(before as usize).map_or(zero_ns, |before| before.end_ns);
    match lanes.get_mut(lane as usize) {
        Some(state) if state.end_ns == zero_ns => state.end_ns = before,
        _ => {}
    }
}

/// A gap as it is written, and the place of its length among `SHORT`.
#[inline]
fn gap(value: i64) -> (u64, usize) {
    signed(value, 1 << 8, 1 << 16)
}

/// A device's begin as it is written, and the place of its length among `LONG`.
#[inline]
fn offset(value: i64) -> (u64, usize) {
    signed(value, 1 << 16, 1 << 24)
}

#[inline]
fn signed(value: i64, first: u64, second: u64) -> (u64, usize) {
    let plain = value.cast_unsigned();
    if plain < second {
        return (plain, usize::from(plain >= first));
    }
    let both = zigzag(value);
    if both >> 32 == 0 { (both, 2) } else { (plain, 3) }
}

/// The place of a duration's length among `LONG`.
#[inline]
fn length(value: u64) -> usize {
    usize::from(value >= 1 << 16) + usize::from(value >= 1 << 24) + usize::from(value >= 1 << 32)
}

// A span's longest form fits in the room: tag, flags, name, depth, lengths, lane, iteration, index, four numbers.
const _: () = assert!(1 + 1 + 5 + 2 + 1 + 5 + 10 + 10 + 4 * 8 < ROOM - 8);
