//! Device times that come after their spans.

use super::SegmentWriter;
use crate::error::Result;
use crate::record::{Awaited, DeviceTime, LaneId, LaterTime};

/// Times that go into one record: a block stays small.
const TOGETHER: usize = 1 << 10;

impl SegmentWriter {
    /// Adds device times of spans of one lane that were written without, in the order of the spans. The times are no
    /// records of the lane: the spans count, once.
    pub fn later(&mut self, lane: LaneId, times: &[LaterTime]) -> Result<()> {
        for times in times.chunks(TOGETHER) {
            let local = self.local_lane(lane);
            let own = |time: &LaterTime| {
                let stream = time.device.stream.map(|stream| self.local_stream(stream));
                LaterTime { device: DeviceTime { stream, ..time.device }, ..*time }
            };
            let times: Vec<LaterTime> = times.iter().map(own).collect();
            self.block.later(local, &times);
            self.write_if_full()?;
        }
        Ok(())
    }

    /// Says from where on a lane's spans may get a time by [`later`](Self::later). To be said before such a span is
    /// written, and again in the block of each [`flush`](Self::flush) that finds something waiting.
    pub fn awaited(&mut self, awaited: &Awaited) {
        let lane = self.local_lane(awaited.lane);
        self.block.awaited(&Awaited { lane, ..*awaited });
    }
}
