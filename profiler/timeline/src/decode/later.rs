//! Device times that come after their spans. Their table stands in `encode/later.rs`.

use super::{Decoder, id};
use crate::record::{Awaited, DeviceTime, LaneId, LaterTime, StreamId};
use crate::visit::Visit;

impl<V: Visit> Decoder<'_, '_, V> {
    pub(super) fn later(&mut self) -> Option<()> {
        let (lane, mut begin_ns) = self.lane_and_end()?;
        let mut device_ns = None;
        for _ in 0..self.input.number()? {
            begin_ns = begin_ns.wrapping_add(self.input.signed()?);
            let device_begin_ns = device_ns.unwrap_or(begin_ns).wrapping_add(self.input.signed()?);
            let duration_ns = self.input.number()?;
            let device = DeviceTime { begin_ns: device_begin_ns, duration_ns, stream: self.stream()? };
            device_ns = Some(device.begin_ns.wrapping_add_unsigned(device.duration_ns));
            self.visit.later(LaterTime { lane, begin_ns, device });
        }
        Some(())
    }

    pub(super) fn awaited(&mut self) -> Option<()> {
        let (lane, end_ns) = self.lane_and_end()?;
        let from_ns = match self.input.number()? {
            0 => None,
            _ => Some(end_ns.wrapping_add(self.input.signed()?)),
        };
        self.visit.awaited(Awaited { lane, from_ns });
        Some(())
    }

    /// The stream of a device time, where it is known.
    fn stream(&mut self) -> Option<Option<StreamId>> {
        if self.version < 3 {
            return Some(None);
        }
        match self.input.number()?.checked_sub(1) {
            Some(stream) => id(self.ids.streams, stream).map(|stream| Some(StreamId(stream))),
            None => Some(None),
        }
    }

    /// A lane, and the end of its last span or iteration in this block.
    fn lane_and_end(&mut self) -> Option<(LaneId, i64)> {
        let local = self.input.number()?;
        let lane = id(self.ids.lanes, local).map(LaneId)?;
        Some((lane, self.states.lanes.get(usize::try_from(local).ok()?)?.end_ns))
    }
}
