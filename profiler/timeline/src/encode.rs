//! A block's payload: records one after the other, each a tag byte and varints (LEB128; `±` zigzag).
//!
//! Texts stand once a block, in a record of their own before their first use, and are numbered from 0 in that order.
//! Times are differences: "since the lane" means since the last end of a span or iteration on that lane in this block.
//!
//! | tag | record | fields |
//! |---|---|---|
//! | 80-ff | span (bits below) | name; lane unless L; ±iteration+1 since that of the lane's last span, unless N; index if I; ±begin since the lane; duration; if D: ±device begin since begin, device duration |
//! | 01 | name | text |
//! | 02 | lane | name, device, rank |
//! | 03 | counter | name, unit, rank |
//! | 04-07 | iteration | lane, kind byte, ±number since the lane's, ±begin since the lane, duration; tag bit 0: CPU time; bit 1: tokens |
//! | 08 | sample, float | counter, ±time since the last sample, 8 bytes IEEE 754 |
//! | 09 | sample, whole | counter, ±time, ±value |
//! | 0a, 0b | flow put, take | ±id since the last flow, lane, ±time since the last flow |
//! | 0c | anchor | ±monotonic, ±realtime |
//! | 0d, 0e | mark info, warning | ±time, text |
//! | 0f | open spans | count, then of each: name, lane, ±begin since the lane. Replaces what the last block said |
//! | 10 | totals | emitted, written, dropped, open, negative, unresolved, misplaced, up to and with this block |
//! | 11 | device anchor (version 2) | device (a name), ±device time, ±host time, uncertainty |
//! | 12 | stack (version 2) | ±time since the last stack, thread id, thread (a name), lane+1 or 0, iteration+1 or 0; count of spans, their names; count of frames, their names |
//! | 13 | lane totals (version 2) | lane, emitted, written, dropped. Replaces what was said of that lane before |
//!
//! A span's tag: bit 6 I, it has an index; bit 5 D, it has a device time; bit 4 L, same lane as the last span; bit 3 N, same
//! iteration as the last span of its lane; bits 2-0 depth, where 7 means that it follows the tag as a varint.

use crate::record::{
    Anchor, Counter, DeviceAnchor, Flow, FlowEnd, Iteration, Kind, Lane, LaneId, LaneTotals, Mark, NameId, OpenSpan,
    Sample, Severity, Span, StackSample, Totals,
};
use crate::varint::{put, put_signed, put_text};

pub(crate) mod tag {
    pub const SPAN: u8 = 0x80;
    pub const SPAN_INDEX: u8 = 0x40;
    pub const SPAN_DEVICE: u8 = 0x20;
    pub const SPAN_SAME_LANE: u8 = 0x10;
    pub const SPAN_SAME_ITERATION: u8 = 0x08;
    pub const SPAN_DEPTH: u8 = 0x07;
    pub const NAME: u8 = 0x01;
    pub const LANE: u8 = 0x02;
    pub const COUNTER: u8 = 0x03;
    pub const ITERATION: u8 = 0x04;
    pub const ITERATION_CPU: u8 = 0x01;
    pub const ITERATION_TOKENS: u8 = 0x02;
    pub const ITERATION_LAST: u8 = 0x07;
    pub const SAMPLE_FLOAT: u8 = 0x08;
    pub const SAMPLE_WHOLE: u8 = 0x09;
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
    /// Number of the last iteration.
    pub iteration: u64,
}

/// A payload in the making. Ids are those of the block: give its texts with `name`, `lane`, `counter` first.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    pub bytes: Vec<u8>,
    pub records: u32,
    /// First and last time of the records.
    pub extent: Option<(i64, i64)>,
    lanes: Vec<LaneState>,
    last_lane: Option<LaneId>,
    sample_ns: i64,
    flow: (u64, i64),
    stack_ns: i64,
}

impl Encoder {
    pub(crate) fn name(&mut self, text: &str) {
        self.tag(tag::NAME);
        put_text(&mut self.bytes, text);
    }

    pub(crate) fn lane(&mut self, lane: &Lane) {
        self.tag(tag::LANE);
        put_text(&mut self.bytes, &lane.name);
        put_text(&mut self.bytes, &lane.device);
        put(&mut self.bytes, u64::from(lane.rank));
    }

    pub(crate) fn counter(&mut self, counter: &Counter) {
        self.tag(tag::COUNTER);
        put_text(&mut self.bytes, &counter.name);
        put_text(&mut self.bytes, &counter.unit);
        put(&mut self.bytes, u64::from(counter.rank));
    }

    pub(crate) fn span(&mut self, span: &Span) {
        let before = *self.state(span.lane);
        let iteration = span.iteration.map_or(0, |n| n.wrapping_add(1));
        let same_iteration = iteration == before.span_iteration;
        let same_lane = self.last_lane == Some(span.lane);
        self.tag(span_tag(span, same_lane, same_iteration));
        let bytes = &mut self.bytes;
        if span.depth >= tag::SPAN_DEPTH {
            put(bytes, u64::from(span.depth));
        }
        put(bytes, u64::from(span.name.0));
        if !same_lane {
            put(bytes, u64::from(span.lane.0));
        }
        if !same_iteration {
            put_signed(bytes, iteration.wrapping_sub(before.span_iteration).cast_signed());
        }
        if let Some(index) = span.index {
            put(bytes, index);
        }
        put_signed(bytes, span.begin_ns.wrapping_sub(before.end_ns));
        put(bytes, span.duration_ns);
        if let Some(device) = span.device {
            put_signed(bytes, device.begin_ns.wrapping_sub(span.begin_ns));
            put(bytes, device.duration_ns);
        }
        self.last_lane = Some(span.lane);
        let end_ns = self.seen(span.begin_ns, span.duration_ns);
        let state = self.state(span.lane);
        (state.end_ns, state.span_iteration) = (end_ns, iteration);
    }

    pub(crate) fn iteration(&mut self, iteration: &Iteration) {
        let before = *self.state(iteration.lane);
        let cpu = if iteration.cpu_ns.is_some() { tag::ITERATION_CPU } else { 0 };
        let tokens = if iteration.tokens.is_some() { tag::ITERATION_TOKENS } else { 0 };
        self.tag(tag::ITERATION | cpu | tokens);
        let bytes = &mut self.bytes;
        put(bytes, u64::from(iteration.lane.0));
        bytes.push(KINDS.iter().position(|kind| *kind == iteration.kind).unwrap_or(0) as u8);
        put_signed(bytes, iteration.number.wrapping_sub(before.iteration).cast_signed());
        put_signed(bytes, iteration.begin_ns.wrapping_sub(before.end_ns));
        put(bytes, iteration.duration_ns);
        for value in [iteration.cpu_ns, iteration.tokens].into_iter().flatten() {
            put(bytes, value);
        }
        let end_ns = self.seen(iteration.begin_ns, iteration.duration_ns);
        let state = self.state(iteration.lane);
        (state.end_ns, state.iteration) = (end_ns, iteration.number);
    }

    pub(crate) fn sample(&mut self, sample: &Sample) {
        let whole = whole(sample.value);
        self.tag(if whole.is_some() { tag::SAMPLE_WHOLE } else { tag::SAMPLE_FLOAT });
        put(&mut self.bytes, u64::from(sample.counter.0));
        put_signed(&mut self.bytes, sample.time_ns.wrapping_sub(self.sample_ns));
        match whole {
            Some(value) => put_signed(&mut self.bytes, value),
            None => self.bytes.extend_from_slice(&sample.value.to_le_bytes()),
        }
        self.sample_ns = sample.time_ns;
        self.seen(sample.time_ns, 0);
    }

    pub(crate) fn flow(&mut self, flow: &Flow) {
        self.tag(if flow.end == FlowEnd::Put { tag::FLOW_PUT } else { tag::FLOW_TAKE });
        put_signed(&mut self.bytes, flow.id.wrapping_sub(self.flow.0).cast_signed());
        put(&mut self.bytes, u64::from(flow.lane.0));
        put_signed(&mut self.bytes, flow.time_ns.wrapping_sub(self.flow.1));
        self.flow = (flow.id, flow.time_ns);
        self.seen(flow.time_ns, 0);
    }

    pub(crate) fn anchor(&mut self, anchor: &Anchor) {
        self.tag(tag::ANCHOR);
        put_signed(&mut self.bytes, anchor.monotonic_ns);
        put_signed(&mut self.bytes, anchor.realtime_ns);
        self.seen(anchor.monotonic_ns, 0);
    }

    pub(crate) fn mark(&mut self, mark: &Mark) {
        self.tag(if mark.severity == Severity::Info { tag::MARK_INFO } else { tag::MARK_WARNING });
        put_signed(&mut self.bytes, mark.time_ns);
        put_text(&mut self.bytes, &mark.text);
        self.seen(mark.time_ns, 0);
    }

    pub(crate) fn open(&mut self, open: &[OpenSpan]) {
        self.tag(tag::OPEN);
        put(&mut self.bytes, open.len() as u64);
        for span in open {
            let since = self.state(span.lane).end_ns;
            put(&mut self.bytes, u64::from(span.name.0));
            put(&mut self.bytes, u64::from(span.lane.0));
            put_signed(&mut self.bytes, span.begin_ns.wrapping_sub(since));
        }
    }

    pub(crate) fn totals(&mut self, totals: &Totals) {
        let Totals { emitted, written, dropped, open, negative, unresolved, misplaced } = *totals;
        self.tag(tag::TOTALS);
        for number in [emitted, written, dropped, open, negative, unresolved, misplaced] {
            put(&mut self.bytes, number);
        }
    }

    pub(crate) fn device_anchor(&mut self, anchor: &DeviceAnchor) {
        self.tag(tag::DEVICE_ANCHOR);
        put(&mut self.bytes, u64::from(anchor.device.0));
        put_signed(&mut self.bytes, anchor.device_ns);
        put_signed(&mut self.bytes, anchor.host_ns);
        put(&mut self.bytes, anchor.uncertainty_ns);
        self.seen(anchor.host_ns, 0);
    }

    pub(crate) fn stack(&mut self, stack: &StackSample) {
        self.tag(tag::STACK);
        let bytes = &mut self.bytes;
        put_signed(bytes, stack.time_ns.wrapping_sub(self.stack_ns));
        put(bytes, u64::from(stack.tid));
        put(bytes, u64::from(stack.thread.0));
        put(bytes, stack.lane.map_or(0, |lane| u64::from(lane.0) + 1));
        put(bytes, stack.iteration.map_or(0, |n| n.wrapping_add(1)));
        for names in [&stack.spans, &stack.frames] {
            put(bytes, names.len() as u64);
            names.iter().for_each(|NameId(id)| put(bytes, u64::from(*id)));
        }
        self.stack_ns = stack.time_ns;
        self.seen(stack.time_ns, 0);
    }

    pub(crate) fn lane_totals(&mut self, totals: &LaneTotals) {
        let LaneTotals { lane, emitted, written, dropped } = *totals;
        self.tag(tag::LANE_TOTALS);
        for number in [u64::from(lane.0), emitted, written, dropped] {
            put(&mut self.bytes, number);
        }
    }

    fn tag(&mut self, tag: u8) {
        self.bytes.push(tag);
        self.records += 1;
    }

    fn state(&mut self, lane: LaneId) -> &mut LaneState {
        let place = lane.0 as usize;
        if place >= self.lanes.len() {
            self.lanes.resize(place + 1, LaneState::default());
        }
        &mut self.lanes[place]
    }

    /// Notes a record's time in the block's extent, and returns its end.
    fn seen(&mut self, begin_ns: i64, duration_ns: u64) -> i64 {
        let last = begin_ns.saturating_add_unsigned(duration_ns);
        let (first_ns, last_ns) = self.extent.unwrap_or((begin_ns, last));
        self.extent = Some((first_ns.min(begin_ns), last_ns.max(last)));
        begin_ns.wrapping_add(duration_ns.cast_signed())
    }
}

fn span_tag(span: &Span, same_lane: bool, same_iteration: bool) -> u8 {
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    tag::SPAN
        | flag(span.index.is_some(), tag::SPAN_INDEX)
        | flag(span.device.is_some(), tag::SPAN_DEVICE)
        | flag(same_lane, tag::SPAN_SAME_LANE)
        | flag(same_iteration, tag::SPAN_SAME_ITERATION)
        | span.depth.min(tag::SPAN_DEPTH)
}

/// The value as a whole number, if it is exactly one that a varint holds well (so not -0.0, NaN or beyond 2^53).
fn whole(value: f64) -> Option<i64> {
    let number = value as i64;
    let exact = (number as f64).to_bits() == value.to_bits();
    (exact && number.unsigned_abs() < 1 << 53).then_some(number)
}
