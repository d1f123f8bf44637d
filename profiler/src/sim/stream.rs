//! Streams and events of a simulated device.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use super::clock::nanoseconds;
use super::device::SimDevice;
use crate::{DeviceError, DeviceEvent, DeviceStream, StreamKey};

/// What launching a kernel takes the host.
const LAUNCH: Duration = Duration::from_nanos(4_500);

/// A stream of a [`SimDevice`]. Clones are the same stream.
#[derive(Clone, Debug)]
pub struct SimStream {
    device: SimDevice,
    id: i64,
    side: bool,
    /// When the work that it has so far will be done, true nanoseconds.
    free_ns: Arc<AtomicI64>,
    records: Arc<AtomicU64>,
}

/// An event of a [`SimDevice`].
#[derive(Debug)]
pub struct SimEvent {
    device: SimDevice,
    /// When it is ready, true nanoseconds; `i64::MAX`: never.
    at_ns: Option<i64>,
}

impl SimStream {
    pub(super) fn new(device: SimDevice, id: i64) -> Self {
        Self { device, id, side: id < 0, free_ns: Arc::new(AtomicI64::new(i64::MIN)), records: Arc::default() }
    }

    /// Queues work that takes so long; that itself takes the host 4.5 µs, as a launch does. Returns when the work begins
    /// and ends, true nanoseconds: the truth to test against.
    pub fn work(&self, duration: Duration) -> (i64, i64) {
        self.device.0.clock.pass(LAUNCH);
        let begin = self.device.0.clock.now_ns().max(self.free_ns.load(Ordering::Relaxed));
        let end = begin.saturating_add(nanoseconds(duration));
        self.free_ns.store(end, Ordering::Relaxed);
        (begin, end)
    }

    /// When the work that it has so far will be done, true nanoseconds.
    #[must_use]
    pub fn free_ns(&self) -> i64 {
        self.free_ns.load(Ordering::Relaxed)
    }

    /// Events that were recorded on it.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }
}

impl DeviceStream for SimStream {
    fn key(&self) -> StreamKey {
        StreamKey { device: self.device.0.index, stream: self.id }
    }

    fn new_event(&self) -> Result<Box<dyn DeviceEvent>, DeviceError> {
        self.device.0.check()?;
        self.device.0.created.fetch_add(1, Ordering::Relaxed);
        Ok(Box::new(SimEvent { device: self.device.clone(), at_ns: None }))
    }

    fn record(&self, event: &mut dyn DeviceEvent) -> Result<(), DeviceError> {
        let shared = &self.device.0;
        shared.check()?;
        let Some(event) = event.as_any_mut().downcast_mut::<SimEvent>() else {
            return shared.refuse("invalid resource handle: no event of a simulated device");
        };
        if !Arc::ptr_eq(&event.device.0, shared) {
            return shared.refuse("invalid resource handle: another device's event");
        }
        shared.recorded.fetch_add(1, Ordering::Relaxed);
        self.records.fetch_add(1, Ordering::Relaxed);
        let soon = shared.clock.now_ns().saturating_add(shared.latency_ns(self.side));
        let at_ns = soon.max(self.free_ns.load(Ordering::Relaxed));
        // What comes behind the event is later than it.
        self.free_ns.store(at_ns, Ordering::Relaxed);
        let lost = !self.side
            && shared.to_lose.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
        event.at_ns = Some(if lost { i64::MAX } else { at_ns });
        Ok(())
    }

    fn side(&self) -> Result<Box<dyn DeviceStream>, DeviceError> {
        let shared = &self.device.0;
        shared.check()?;
        if shared.no_side.load(Ordering::Relaxed) {
            return Err(DeviceError("the device has no more streams".to_owned()));
        }
        Ok(Box::new(Self::new(self.device.clone(), shared.next_side.fetch_sub(1, Ordering::Relaxed))))
    }
}

impl SimEvent {
    /// When it became ready, true nanoseconds.
    fn done_ns(&self) -> Option<i64> {
        let now_ns = self.device.0.clock.now_ns();
        self.at_ns.filter(|at_ns| *at_ns <= now_ns)
    }
}

impl DeviceEvent for SimEvent {
    fn ready(&self) -> Result<bool, DeviceError> {
        self.device.0.check()?;
        Ok(self.done_ns().is_some())
    }

    fn elapsed_ns(&self, later: &dyn DeviceEvent) -> Result<i64, DeviceError> {
        let device = &self.device;
        device.0.check()?;
        let Some(later) = later.as_any().downcast_ref::<Self>() else {
            return device.0.refuse("invalid resource handle: no event of a simulated device");
        };
        if !Arc::ptr_eq(&later.device.0, &device.0) {
            return device.0.refuse("invalid resource handle: another device's event");
        }
        let (Some(from), Some(to)) = (self.done_ns(), later.done_ns()) else {
            return device.0.refuse("not ready");
        };
        // As CUDA gives it: milliseconds in an f32.
        let ms = (device.device_ns(to) - device.device_ns(from)) as f64 / 1e6;
        Ok((f64::from(ms as f32) * 1e6).round() as i64)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

impl Drop for SimEvent {
    fn drop(&mut self) {
        self.device.0.destroyed.fetch_add(1, Ordering::Relaxed);
    }
}
