//! Device times that come after their spans.
//!
//! | tag | record | fields |
//! |---|---|---|
//! | 1e | later | lane, count, then of each: ±begin of the span since that of the one before (the first: since the lane), ±device begin since the device end of the one before (the first: since the span's begin), device duration; from version 3 on: stream+1 or 0 |
//! | 1f | awaited | lane, 0; or lane, 1, ±begin since the lane: spans of the lane that begin then or later may get such a time. It stands before the spans that it is about, in their block or in one before. Replaces what was said of the lane |

use super::{Encoder, tag};
use crate::record::{Awaited, LaneId, LaterTime};
use crate::varint::{put, put_signed};

impl Encoder {
    /// Device times of spans of one lane.
    pub(crate) fn later(&mut self, lane: LaneId, times: &[LaterTime]) {
        let mut begin_ns = self.end_of(lane);
        let mut device_ns = None;
        self.append(tag::LATER, |bytes| {
            put(bytes, u64::from(lane.0));
            put(bytes, times.len() as u64);
            for LaterTime { begin_ns: begin, device, .. } in times {
                put_signed(bytes, begin.wrapping_sub(begin_ns));
                put_signed(bytes, device.begin_ns.wrapping_sub(device_ns.unwrap_or(*begin)));
                put(bytes, device.duration_ns);
                put(bytes, device.stream.map_or(0, |stream| u64::from(stream.0) + 1));
                begin_ns = *begin;
                device_ns = Some(device.begin_ns.wrapping_add_unsigned(device.duration_ns));
            }
        });
        // The block reaches back to the spans: whoever asks for their time must look into it.
        times.iter().for_each(|time| self.seen(time.begin_ns, 0));
    }

    pub(crate) fn awaited(&mut self, awaited: &Awaited) {
        let since = self.end_of(awaited.lane);
        self.append(tag::AWAITED, |bytes| {
            put(bytes, u64::from(awaited.lane.0));
            put(bytes, u64::from(awaited.from_ns.is_some()));
            awaited.from_ns.into_iter().for_each(|from_ns| put_signed(bytes, from_ns.wrapping_sub(since)));
        });
    }

    fn end_of(&self, lane: LaneId) -> i64 {
        self.lanes.get(lane.0 as usize).map_or(0, |state| state.end_ns)
    }
}
