//! The records that come once in a while: texts, anchors, marks, stacks, what is open, accounts.

use super::{Encoder, LaneState, tag};
use crate::record::{Anchor, DeviceAnchor, Expired, LaneTotals, Mark, NameId, OpenSpan, Severity, StackSample, Totals};
use crate::varint::{ROOM, put, put_signed, put_text};

impl Encoder {
    /// Introduces the writer's name `id`; so do the next three with a lane, a counter and a stream.
    pub(crate) fn name(&mut self, id: u32, text: &str) {
        self.head.name(id, text);
        self.records += 1;
    }

    pub(crate) fn lane(&mut self, id: u32, texts: [&str; 2], rank: u32) {
        self.head.lane(id, texts, rank);
        self.lanes.push(LaneState::default());
        self.records += 1;
    }

    pub(crate) fn counter(&mut self, id: u32, texts: [&str; 2], rank: u32) {
        self.head.counter(id, texts, rank);
        self.counters.push([0; 3]);
        self.records += 1;
    }

    pub(crate) fn stream(&mut self, id: u32, device: &str, number: i64, rank: u32) {
        self.head.stream(id, device, number, rank);
        self.records += 1;
    }

    pub(crate) fn anchor(&mut self, anchor: &Anchor) {
        self.seen(anchor.monotonic_ns, 0);
        self.old_anchor(anchor);
    }

    /// An anchor of earlier times, which the block does not reach back to.
    pub(crate) fn old_anchor(&mut self, anchor: &Anchor) {
        self.append(tag::ANCHOR, |bytes| {
            put_signed(bytes, anchor.monotonic_ns);
            put_signed(bytes, anchor.realtime_ns);
        });
    }

    pub(crate) fn device_anchor(&mut self, anchor: &DeviceAnchor) {
        self.append(tag::DEVICE_ANCHOR, |bytes| {
            put(bytes, u64::from(anchor.device.0));
            put_signed(bytes, anchor.device_ns);
            put_signed(bytes, anchor.host_ns);
            put(bytes, anchor.uncertainty_ns);
        });
        self.seen(anchor.host_ns, 0);
    }

    pub(crate) fn mark(&mut self, mark: &Mark) {
        let tag = if mark.severity == Severity::Info { tag::MARK_INFO } else { tag::MARK_WARNING };
        self.append(tag, |bytes| {
            put_signed(bytes, mark.time_ns);
            put_text(bytes, &mark.text);
        });
        self.seen(mark.time_ns, 0);
    }

    pub(crate) fn stack(&mut self, stack: &StackSample) {
        let since = stack.time_ns.wrapping_sub(self.stack_ns);
        self.append(tag::STACK, |bytes| {
            put_signed(bytes, since);
            put(bytes, u64::from(stack.tid));
            put(bytes, u64::from(stack.thread.0));
            put(bytes, stack.lane.map_or(0, |lane| u64::from(lane.0) + 1));
            put(bytes, stack.iteration.map_or(0, |n| n.wrapping_add(1)));
            for names in [&stack.spans, &stack.frames] {
                put(bytes, names.len() as u64);
                names.iter().for_each(|NameId(id)| put(bytes, u64::from(*id)));
            }
        });
        self.stack_ns = stack.time_ns;
        self.seen(stack.time_ns, 0);
    }

    pub(crate) fn open(&mut self, open: &[OpenSpan]) {
        let lanes = std::mem::take(&mut self.lanes);
        self.append(tag::OPEN, |bytes| {
            put(bytes, open.len() as u64);
            for span in open {
                let since = lanes.get(span.lane.0 as usize).map_or(0, |state| state.end_ns);
                put(bytes, u64::from(span.name.0));
                put(bytes, u64::from(span.lane.0));
                put_signed(bytes, span.begin_ns.wrapping_sub(since));
            }
        });
        self.lanes = lanes;
    }

    pub(crate) fn totals(&mut self, totals: &Totals) {
        let Totals { emitted, written, dropped, open, negative, unresolved, misplaced } = *totals;
        self.numbers(tag::TOTALS, &[emitted, written, dropped, open, negative, unresolved, misplaced]);
    }

    pub(crate) fn lane_totals(&mut self, totals: &LaneTotals) {
        let LaneTotals { lane, emitted, written, dropped } = *totals;
        let missing = emitted.wrapping_sub(dropped).wrapping_sub(written).cast_signed();
        if dropped == 0 && missing == 0 {
            return self.numbers(tag::LANE_WHOLE, &[u64::from(lane.0), emitted]);
        }
        self.append(tag::LANE_TOTALS, |bytes| {
            [u64::from(lane.0), emitted, dropped].into_iter().for_each(|number| put(bytes, number));
            put_signed(bytes, missing);
        });
    }

    pub(crate) fn expired(&mut self, first_sequence: u32, expired: &Expired) {
        let Expired { records, segments, bytes } = *expired;
        self.numbers(tag::EXPIRED, &[u64::from(first_sequence), records, segments, bytes]);
    }

    #[cold]
    pub(super) fn numbers(&mut self, tag: u8, numbers: &[u64]) {
        self.append(tag, |bytes| numbers.iter().for_each(|number| put(bytes, *number)));
    }

    /// Appends a record of any length.
    pub(super) fn append(&mut self, tag: u8, fill: impl FnOnce(&mut Vec<u8>)) {
        self.scratch.clear();
        self.scratch.push(tag);
        fill(&mut self.scratch);
        let length = self.scratch.len();
        if self.bytes.len() - self.used < length + ROOM {
            self.grow(length + ROOM);
        }
        self.bytes[self.used..self.used + length].copy_from_slice(&self.scratch);
        self.took(length);
    }
}
