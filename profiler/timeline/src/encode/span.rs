//! Spans, the records that there are most of.
//!
//! What is alike in most spans of a name is their *shape*: flags, depth, name, and how long each number is. A shape stands
//! before the first span of it in a block, and is numbered from 0 in that order; a span's tag is 80 + the number. So a span
//! is its tag, and numbers at places that the tag tells.
//!
//! | part | bytes | what |
//! |---|---|---|
//! | shape | | behind tags ff (which gets the next number; 127 at most) and 21 (which gets none): flags byte, depth byte, lengths byte, name |
//! | gap | 1, 2, 4, 8 | begin since the lane (if that is 0: since the lane before); signed if 4 or 8 bytes (4: plus 2^31) |
//! | duration | 2, 3, 4, 8 | |
//! | device begin | 2, 3, 4, 8 | if flag D (bit 3): since begin; signed if 4 or 8 bytes (4: plus 2^31) |
//! | device duration | 2, 3, 4, 8 | if flag D |
//! | index | varint | if flag E (bit 1) |
//!
//! Lengths: bits 0-1 gap, 2-3 duration, 4-5 device begin, 6-7 device duration: places in the lists above. Flag I (bit 0): it
//! has an index, which is one more than the name's last one in this block (the first: 0) unless flag E says that it stands
//! behind the numbers, or flag Z (bit 2) that it is 0. Lane, iteration and stream are those that the last tag 1c
//! told; an iteration n of the lane that ended is followed by n+1.

use super::shape::{BIASED, DEVICE, EXPLICIT, FLAGS_AT, INDEX, LONGEST, Shape, ZERO, lengths};
use super::{Encoder, LaneState, end, room, tag};
use crate::record::{LaneId, NameId, Span, StreamId};
use crate::varint::{ROOM, Record, zigzag};

/// A span as numbers, the gap left out.
struct Numbers {
    flags: u8,
    numbers: [u64; 4],
    iteration: u64,
    stream: u32,
}

impl Numbers {
    #[inline]
    fn of(span: &Span) -> Self {
        let index = if span.index.is_some() { INDEX } else { 0 };
        let duration = span.duration_ns;
        let iteration = span.iteration.map_or(0, |n| n.wrapping_add(1));
        let (device, numbers, stream) = match span.device {
            Some(device) => {
                let since = device.begin_ns.wrapping_sub(span.begin_ns).cast_unsigned();
                let stream = device.stream.map_or(0, |stream| stream.0.wrapping_add(1));
                (DEVICE, [0, duration, since, device.duration_ns], stream)
            }
            None => (0, [0, duration, 0, 0], 0),
        };
        Self { flags: index | device, numbers, iteration, stream }
    }
}

impl Encoder {
    /// Adds a span whose lane, iteration, stream and shape are those that the block knows already; `false`: they are not,
    /// or there is no room.
    #[inline]
    pub(crate) fn usual_span(&mut self, span: &Span, name: NameId) -> bool {
        if span.device.is_some() { self.known_span::<true>(span, name) } else { self.known_span::<false>(span, name) }
    }

    #[inline(always)]
    fn known_span<const ON_DEVICE: bool>(&mut self, span: &Span, name: NameId) -> bool {
        let Numbers { mut flags, mut numbers, iteration, stream } = Numbers::of(span);
        let Some(state) = self.lanes.get_mut(self.lane as usize) else { return false };
        let other = span.lane.0 != self.writers_lane || iteration != state.span_iteration;
        let end_ns = end(span.begin_ns, span.duration_ns);
        if other || (ON_DEVICE && stream != state.stream) || end_ns < span.begin_ns {
            return false;
        }
        let Some(known) = self.shapes.names.get_mut(name.0 as usize) else { return false };
        let out_of_turn = span.index.is_some_and(|index| index != known.next_index);
        if out_of_turn {
            if span.index != Some(0) {
                return false;
            }
            flags |= ZERO;
        }
        let key = self.shapes.block | u64::from(flags) << FLAGS_AT | u64::from(span.depth);
        numbers[0] = span.begin_ns.wrapping_sub(state.end_ns).cast_unsigned();
        let [first, second] = &known.shapes[usize::from(out_of_turn)];
        let (shape, written) = match first.fit(key, numbers) {
            Some(written) => (first, written),
            None => match second.fit(key, numbers) {
                Some(written) => (second, written),
                None => return false,
            },
        };
        let Some(room) = self.bytes.get_mut(self.used..).and_then(<[u8]>::first_chunk_mut) else { return false };
        shape.layout.write::<ON_DEVICE>(room, written);
        let (tag, length) = (shape.tag, usize::from(shape.layout.length));
        if let Some(index) = span.index {
            known.next_index = index.wrapping_add(1);
        }
        state.end_ns = end_ns;
        self.extent = (self.extent.0.min(span.begin_ns), self.extent.1.max(end_ns));
        self.took(tag, length);
        true
    }

    /// Adds any span.
    #[inline(never)]
    pub(crate) fn other_span(&mut self, span: &Span, name: NameId, lane: LaneId, stream: Option<StreamId>) {
        let entered = self.enter(span, lane, stream);
        let grew = self.make_room(ROOM);
        // With the same lane and room as a moment ago it needs a shape.
        if (entered.is_none() && !grew) || !self.usual_span(span, name) {
            self.new_span(span, name, entered == Some(true));
        }
    }

    /// Says which lane, iteration and stream the next spans are of, where that has changed: `Some` then, and whether it is
    /// another lane.
    fn enter(&mut self, span: &Span, lane: LaneId, stream: Option<StreamId>) -> Option<bool> {
        let switched = self.lane != lane.0;
        if switched {
            start_lane(&mut self.lanes, self.lane, lane.0, 0);
            (self.lane, self.writers_lane) = (lane.0, span.lane.0);
        }
        let Numbers { flags, iteration, stream: writers_stream, .. } = Numbers::of(span);
        let Some(state) = self.lanes.get_mut(lane.0 as usize) else { return Some(switched) };
        let since = iteration.wrapping_sub(std::mem::replace(&mut state.span_iteration, iteration)).cast_signed();
        // Of a span that has none it is not known; and mostly the lane's last one goes on.
        let moved = flags & DEVICE != 0 && std::mem::replace(&mut state.stream, writers_stream) != writers_stream;
        if !switched && since == 0 && !moved {
            return None;
        }
        let stream = if moved { stream.map_or(1, |stream| u64::from(stream.0) + 2) } else { 0 };
        self.make_room(ROOM);
        let mut record = Record::empty(room(&mut self.bytes, self.used));
        record.small(lane.0);
        record.number(zigzag(since));
        record.number(stream);
        let length = record.length;
        self.took(tag::ENTER, length);
        Some(switched)
    }

    /// Writes a span with its shape, and numbers that if it may come again.
    fn new_span(&mut self, span: &Span, name: NameId, switched: bool) {
        let Numbers { mut flags, mut numbers, .. } = Numbers::of(span);
        let Some(state) = self.lanes.get_mut(self.lane as usize) else { return };
        numbers[0] = span.begin_ns.wrapping_sub(state.end_ns).cast_unsigned();
        state.end_ns = end(span.begin_ns, span.duration_ns);
        if let Some(index) = span.index {
            let next = &mut self.shapes.name(name).next_index;
            flags |= match index {
                index if index == *next => 0,
                0 => ZERO,
                _ => EXPLICIT,
            };
            *next = index.wrapping_add(1);
        }
        let lengths = lengths(numbers, flags);
        let longest = (0..4).any(|number| lengths >> (2 * number) & 3 == LONGEST);
        // The first span of a lane in a block lies far from the one before it: no other will be like it.
        let once = longest || flags & EXPLICIT != 0 || (switched && lengths & 3 >= BIASED);
        let key = self.shapes.block | u64::from(flags) << FLAGS_AT | u64::from(span.depth);
        let numbered = if once { None } else { self.shapes.add(name, key, lengths) };
        let tag = if numbered.is_some() { tag::SPAN_NEW } else { tag::SPAN_ONCE };
        let shape = numbered.unwrap_or_else(|| Shape::new(key, lengths, tag));
        let mut record = Record::new(room(&mut self.bytes, self.used), flags);
        record.byte(span.depth);
        record.byte(shape.lengths);
        record.small(name.0);
        for (number, length) in shape.fit(key, numbers).unwrap_or(numbers).into_iter().zip(shape.layout.lengths()) {
            record.fixed(number, length);
        }
        if flags & EXPLICIT != 0 {
            record.number(span.index.unwrap_or(0));
        }
        let length = record.length;
        self.seen(span.begin_ns, span.duration_ns);
        self.took(tag, length);
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

// A span's longest form fits in the room: flags, depth, lengths, name, four numbers, index.
const _: () = assert!(1 + 1 + 1 + 5 + 4 * 8 + 10 < ROOM - 8);
