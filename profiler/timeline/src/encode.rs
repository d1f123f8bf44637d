//! A block's payload: records one after the other, each a tag byte and varints (LEB128; `±` zigzag).
//!
//! Texts stand once a block, in a record of their own, and are numbered from 0 in that order. All of them stand before
//! the block's other records (in version 1: anywhere before their first use). Times are differences: "since the lane" means since the last end of a span or iteration on that lane in this block.
//!
//! | tag | record | fields |
//! |---|---|---|
//! | 80-ff | span | see `encode/span.rs` |
//! | 01 | name | text |
//! | 02, 16 | lane | name, device; 02: rank, 16: the block's rank |
//! | 03, 17 | counter | name, unit; 03: rank, 17: the block's rank |
//! | 19, 1a | stream (version 3) | device, its number in decimal digits; 19: rank, 1a: the block's rank |
//! | 04-07 | iteration | lane · 8 + kind, ±number since that of the lane's last span, ±begin since the end of the lane's last iteration (if the block has none: since the lane), ±end since the lane; tag bit 0: CPU time; bit 1: tokens |
//! | 40-7f | sample (bits below) | counter; time since the last sample, 3 bytes, or ± in 8 bytes if T; value |
//! | 0a, 0b | flow put, take | ±id since the last flow of this tag, lane, ±time since the lane |
//! | 0c | anchor | ±monotonic, ±realtime |
//! | 0d, 0e | mark info, warning | ±time, text |
//! | 0f | open spans | count, then of each: name, lane, ±begin since the lane. Replaces what the last block said |
//! | 10 | totals | emitted, written, dropped, open, negative, unresolved, misplaced, up to and with this block |
//! | 11 | device anchor (version 2) | device (a name), ±device time, ±host time, uncertainty |
//! | 12 | stack (version 2) | ±time since the last stack, thread id, thread (a name), lane+1 or 0, iteration+1 or 0; count of spans, their names; count of frames, their names |
//! | 13, 18 | lane totals (version 2) | lane, emitted; 13: dropped, ±what is missing: emitted less dropped less written (18: 0 both). Replaces what was said of that lane before |
//! | 14 | expired (version 2) | sequence number of the first block that `keep` has left, records, segments and bytes before it. Replaces what was said before |
//! | 1b | stream of a lane (version 3) | lane, stream+1 or 0: where the device times of its spans behind this ran. At first 0, not known |
//! | 1e, 1f | device times that come later, and from where on (version 2) | see `encode/later.rs` |
//!
//! A sample's tag: bits 5-4 what the value counts: 0 ones, 1 thousandths, 2 512s, and then it is ± since the counter's last
//! value of this sort; 3: it is IEEE 754. Bit 3 T. Bits 2-0 bytes of the value: 0 to 6, or 7 for 8 bytes.
//!
//! Texts are packed as the table in `texts.rs` says. What version 1 wrote otherwise: `decode/old.rs`.

mod head;
mod iteration;
mod later;
mod rare;
mod sample;
pub(crate) mod span;

use self::head::Head;
pub(crate) use self::head::Kept;
use self::span::Shapes;
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
    pub const ON_STREAM: u8 = 0x1b;
    pub const LATER: u8 = 0x1e;
    pub const AWAITED: u8 = 0x1f;
}

/// Kinds by the byte that stands for them.
pub(crate) const KINDS: [Kind; 6] = [Kind::Train, Kind::Warmup, Kind::Checkpoint, Kind::Eval, Kind::Bare, Kind::Drain];

/// What the next record of a lane is a difference to. Writer and reader keep the same.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LaneState {
    /// Last end of a span or iteration.
    pub end_ns: i64,
    /// Iteration of the last span, plus one; 0 = outside.
    pub span_iteration: u64,
    /// The block's id of the stream of its device times, plus one; 0 = not known.
    pub stream: u32,
    /// Number of the last iteration.
    pub iteration: u64,
    /// End of the last iteration, if there was one.
    pub iteration_end_ns: Option<i64>,
}

impl LaneState {
    /// What the next iteration is a difference to: its number, its begin.
    pub(crate) fn next_iteration(&self) -> (u64, i64) {
        let after = self.iteration.wrapping_add(1);
        let number = self.span_iteration.checked_sub(1).unwrap_or(after);
        (number, self.iteration_end_ns.unwrap_or(self.end_ns))
    }
}

/// A payload in the making. Ids are those of the block: give its texts with `name`, `lane`, `counter` first.
#[derive(Debug)]
pub(crate) struct Encoder {
    /// The block's texts, which stand before its other records.
    head: Head,
    /// The other records, and room for one more.
    bytes: Vec<u8>,
    used: usize,
    records: u32,
    /// First and last time of the records; the first is the greater one in a block without times.
    extent: (i64, i64),
    lanes: Vec<LaneState>,
    last_lane: u32,
    shapes: Shapes,
    /// Last value of each counter and sort.
    counters: Vec<[i64; 3]>,
    sample_ns: i64,
    /// Last id put and taken.
    flows: [u64; 2],
    stack_ns: i64,
    /// Rare records are built here.
    scratch: Vec<u8>,
}

const NO_LANE: u32 = u32::MAX;
const NO_TIMES: (i64, i64) = (i64::MAX, i64::MIN);

impl Encoder {
    /// Begins the first block of a rank.
    pub(crate) fn of_rank(rank: u32) -> Self {
        Self {
            head: Head::of_rank(rank),
            bytes: vec![0; 4 * ROOM],
            used: 0,
            records: 0,
            extent: NO_TIMES,
            lanes: Vec::new(),
            last_lane: NO_LANE,
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
        self.used + self.head.length()
    }

    /// The payload in its two parts, records, first and last time.
    pub(crate) fn payload(&self) -> Payload<'_> {
        let (first_ns, last_ns) = if self.extent.0 > self.extent.1 { (0, 0) } else { self.extent };
        let (texts, rest) = (self.head.bytes(), self.bytes.get(..self.used).unwrap_or_default());
        Payload { texts, rest, records: self.records, first_ns, last_ns }
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
        self.counters.resize(counters, [0; 3]);
        self.shapes.clear();
        self.records = (names + lanes + counters + streams) as u32;
        (self.used, self.extent) = (0, NO_TIMES);
        (self.last_lane, self.sample_ns, self.flows, self.stack_ns) = (NO_LANE, 0, [0; 2], 0);
    }

    /// Notes a record's time in the block's extent.
    #[inline]
    fn seen(&mut self, begin_ns: i64, duration_ns: u64) {
        let last = begin_ns.saturating_add_unsigned(duration_ns);
        self.extent = (self.extent.0.min(begin_ns), self.extent.1.max(last));
    }

    /// A record lies in the room; makes room for the next.
    #[inline]
    fn took(&mut self, length: usize) {
        self.used += length;
        self.records += 1;
        if self.bytes.len() - self.used < ROOM {
            self.grow(ROOM);
        }
    }

    #[cold]
    fn grow(&mut self, least: usize) {
        self.bytes.resize(2 * self.bytes.len() + least, 0);
    }
}

/// A block's payload and what its header says of it.
#[derive(Debug)]
pub(crate) struct Payload<'a> {
    pub texts: &'a [u8],
    pub rest: &'a [u8],
    pub records: u32,
    pub first_ns: i64,
    pub last_ns: i64,
}

/// Room for a record at the end of those before it, which `took` and `append` always leave.
#[inline]
fn room(bytes: &mut [u8], used: usize) -> &mut [u8; ROOM] {
    bytes[used..].first_chunk_mut().expect("room is kept for a record")
}

#[inline]
fn end(begin_ns: i64, duration_ns: u64) -> i64 {
    begin_ns.wrapping_add(duration_ns.cast_signed())
}
