//! A block's payload: texts, then a column of the tags of all other records, a byte each, then a column of what those
//! records hold, in the same order: varints (LEB128; `±` zigzag) unless something else is said. Where a record ends its tag
//! tells for most of them, so a reader need not wait for one to find the next.
//!
//! Texts stand once a block, each a tag and what it holds, and are numbered from 0 in that order. Times are differences:
//! "since the lane" means since the last end of a span or iteration on that lane in this block.
//!
//! | tag | record | fields |
//! |---|---|---|
//! | 80-ff | span | see `encode/span.rs` |
//! | 01 | name | text |
//! | 02, 16 | lane | name, device; 02: rank, 16: the block's rank |
//! | 03, 17 | counter | name, unit; 03: rank, 17: the block's rank |
//! | 19, 1a | stream (version 3) | device, its number in decimal digits; 19: rank, 1a: the block's rank |
//! | 04-07 | iteration | lengths, with the kind in bits 12-14 (2 bytes), lane, ±number since that of the lane's last span, ±begin since the end of the lane's last iteration (if the block has none: since the lane), ±end since the lane; tag bit 0: CPU time; bit 1: tokens. See `encode/iteration.rs` |
//! | 40-7f | sample (bits below) | counter, 1 byte; time since the last sample, 3 bytes; if the counter is ff, the counter, 4 bytes; if T, ±time in 8 bytes instead; value |
//! | 0a, 0b | flow put, take | ±id since the last flow of this tag, lane, ±time since the lane |
//! | 0c | anchor | ±monotonic, ±realtime |
//! | 0d, 0e | mark info, warning | ±time, text |
//! | 0f | open spans | count, then of each: name, lane, ±begin since the lane. Replaces what the last block said |
//! | 10 | totals | emitted, written, dropped, open, negative, unresolved, misplaced, up to and with this block |
//! | 11 | device anchor (version 2) | device (a name), ±device time, ±host time, uncertainty |
//! | 12 | stack (version 2) | ±time since the last stack, thread id, thread (a name), lane+1 or 0, iteration+1 or 0; count of spans, their names; count of frames, their names |
//! | 13, 18 | lane totals (version 2) | lane, emitted; 13: dropped, ±what is missing: emitted less dropped less written (18: 0 both). Replaces what was said of that lane before |
//! | 14 | expired (version 2) | sequence number of the first block that `keep` has left, records, segments and bytes before it. Replaces what was said before |
//! | 1c | enter | of the spans behind this: lane, ±iteration+1 since that of the lane's spans before, 0 or 1 + (stream+1, or 0: not known) if the stream of the lane's device times is another one. At first it is not known |
//! | 1e, 1f | device times that come later, and from where on (version 2) | see `encode/later.rs` |
//! | 21 | span | with a shape that gets no number: see `encode/span.rs` |
//!
//! A sample's tag: bits 5-4 what the value counts: 0 ones, 1 thousandths, 2 512s, and then it is ± since the counter's last
//! value of this sort; 3: it is IEEE 754. Bit 3 T. Bits 2-0 bytes of the value: 0 to 6, or 7 for 8 bytes.
//!
//! Texts are packed as the table in `texts.rs` says. What older versions wrote otherwise: `decode/v1.rs`, `decode/v2.rs`.

mod head;
pub(crate) mod iteration;
mod lane;
mod later;
mod rare;
pub(crate) mod sample;
pub(crate) mod shape;
pub(crate) mod span;

use self::head::Head;
pub(crate) use self::head::Kept;
pub(crate) use self::lane::LaneState;
use self::sample::Counter;
use self::shape::Shapes;
use crate::record::Kind;
use crate::varint::ROOM;

pub(crate) mod tag {
    pub const SPAN: u8 = 0x80;
    pub const SPAN_NEW: u8 = 0xff;
    pub const SAMPLE: u8 = 0x40;
    pub const SAMPLE_LATE: u8 = 0x08;
    pub const NAME: u8 = 0x01;
    pub const LANE: u8 = 0x02;
    pub const COUNTER: u8 = 0x03;
    pub const ITERATION: u8 = 0x04;
    pub const ITERATION_CPU: u8 = 0x01;
    pub const ITERATION_TOKENS: u8 = 0x02;
    pub const ITERATION_LAST: u8 = 0x07;
    pub const FLOW_PUT: u8 = 0x0a;
    pub const FLOW_TAKE: u8 = 0x0b;
    pub const ANCHOR: u8 = 0x0c;
    pub const MARK_INFO: u8 = 0x0d;
    pub const MARK_WARNING: u8 = 0x0e;
    pub const OPEN: u8 = 0x0f;
    pub const TOTALS: u8 = 0x10;
    pub const DEVICE_ANCHOR: u8 = 0x11;
    pub const STACK: u8 = 0x12;
    pub const LANE_TOTALS: u8 = 0x13;
    pub const EXPIRED: u8 = 0x14;
    pub const LANE_WHOLE: u8 = 0x18;
    pub const OWN_LANE: u8 = 0x16;
    pub const OWN_COUNTER: u8 = 0x17;
    pub const STREAM: u8 = 0x19;
    pub const OWN_STREAM: u8 = 0x1a;
    pub const ENTER: u8 = 0x1c;
    pub const LATER: u8 = 0x1e;
    pub const AWAITED: u8 = 0x1f;
    pub const SPAN_ONCE: u8 = 0x21;
}

/// Kinds by the byte that stands for them.
pub(crate) const KINDS: [Kind; 6] = [Kind::Train, Kind::Warmup, Kind::Checkpoint, Kind::Eval, Kind::Bare, Kind::Drain];

/// A payload in the making. Ids are those of the block: give its texts with `name`, `lane`, `counter` first.
#[derive(Debug)]
pub(crate) struct Encoder {
    /// The block's texts, which stand before its other records.
    head: Head,
    /// The tags of the other records.
    tags: Vec<u8>,
    /// What those hold, and room for one more.
    bytes: Vec<u8>,
    used: usize,
    /// How many texts there are.
    texts: u32,
    /// First and last time of the records; the first is the greater one in a block without times.
    extent: (i64, i64),
    lanes: Vec<LaneState>,
    /// The lane that spans are of, by the block's ids and the writer's.
    lane: u32,
    writers_lane: u32,
    shapes: Shapes,
    counters: Vec<Counter>,
    sample_ns: i64,
    /// Last id put and taken.
    flows: [u64; 2],
    stack_ns: i64,
    /// Rare records are built here.
    scratch: Vec<u8>,
}

/// Bytes that a block has room for at first.
const FIRST: usize = 8 << 10;
const NO_LANE: u32 = u32::MAX;
const NO_TIMES: (i64, i64) = (i64::MAX, i64::MIN);

impl Encoder {
    /// Begins the first block of a rank.
    pub(crate) fn of_rank(rank: u32) -> Self {
        Self {
            head: Head::of_rank(rank),
            tags: Vec::new(),
            bytes: vec![0; FIRST],
            used: 0,
            texts: 0,
            extent: NO_TIMES,
            lanes: Vec::new(),
            lane: NO_LANE,
            writers_lane: NO_LANE,
            shapes: Shapes::default(),
            counters: Vec::new(),
            sample_ns: 0,
            flows: [0; 2],
            stack_ns: 0,
            scratch: Vec::new(),
        }
    }

    /// Bytes so far.
    #[inline]
    pub(crate) fn length(&self) -> usize {
        self.used + self.tags.len() + self.head.length()
    }

    /// The payload in its three parts, records, first and last time.
    pub(crate) fn payload(&self) -> Payload<'_> {
        let (first_ns, last_ns) = if self.extent.0 > self.extent.1 { (0, 0) } else { self.extent };
        let parts = [self.head.bytes(), &self.tags, self.bytes.get(..self.used).unwrap_or_default()];
        Payload { parts, records: self.texts + self.tags.len() as u32, first_ns, last_ns }
    }

    /// What the block holds so far, which is texts alone, so that blocks to come can begin with it.
    pub(crate) fn keep(&mut self, texts: [usize; 4]) -> Kept {
        self.head.keep(texts)
    }

    /// Begins the next block, which knows nothing of this one but the texts that are kept.
    pub(crate) fn clear(&mut self, kept: &Kept) {
        let [names, lanes, counters, streams] = kept.texts;
        self.head.clear(kept);
        self.lanes.clear();
        self.lanes.resize(lanes, LaneState::default());
        self.counters.clear();
        self.counters.resize(counters, Counter::default());
        self.shapes.clear();
        self.texts = (names + lanes + counters + streams) as u32;
        self.tags.clear();
        (self.used, self.extent) = (0, NO_TIMES);
        (self.lane, self.writers_lane) = (NO_LANE, NO_LANE);
        (self.sample_ns, self.flows, self.stack_ns) = (0, [0; 2], 0);
    }

    /// Notes a record's time in the block's extent.
    #[inline]
    fn seen(&mut self, begin_ns: i64, duration_ns: u64) {
        let last = begin_ns.saturating_add_unsigned(duration_ns);
        self.extent = (self.extent.0.min(begin_ns), self.extent.1.max(last));
    }

    /// A record lies in the room.
    #[inline]
    fn took(&mut self, tag: u8, length: usize) {
        self.used += length;
        self.tags.push(tag);
    }

    /// Makes room for a record; whether there was none.
    #[inline]
    fn make_room(&mut self, least: usize) -> bool {
        let grows = self.bytes.len() - self.used < least;
        if grows {
            self.grow(least);
        }
        grows
    }

    #[cold]
    fn grow(&mut self, least: usize) {
        self.bytes.resize(2 * self.bytes.len() + least, 0);
    }
}

/// A block's payload and what its header says of it.
#[derive(Debug)]
pub(crate) struct Payload<'a> {
    /// Texts, tags, what the records hold.
    pub parts: [&'a [u8]; 3],
    pub records: u32,
    pub first_ns: i64,
    pub last_ns: i64,
}

/// Room for a record at the end of those before it, once `make_room` has made it.
#[inline]
fn room(bytes: &mut [u8], used: usize) -> &mut [u8; ROOM] {
    bytes[used..].first_chunk_mut().expect("room is kept for a record")
}

#[inline]
fn end(begin_ns: i64, duration_ns: u64) -> i64 {
    begin_ns.wrapping_add(duration_ns.cast_signed())
}
