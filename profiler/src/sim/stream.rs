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
        self.device.0.asked.fetch_add(1, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::{SimClock, SimDevice};
    use crate::DeviceStream;

    #[test]
    fn another_devices_event_is_refused() {
        let clock = SimClock::manual(0);
        let [a, b] = [0, 1].map(|index| SimDevice::new(index, clock.clone()));
        let (mut of_a, mut of_b) = (a.stream(0).new_event().unwrap(), b.stream(0).new_event().unwrap());
        assert!(a.stream(0).record(&mut *of_b).unwrap_err().0.starts_with("invalid resource handle"));
        a.stream(0).record(&mut *of_a).unwrap();
        b.stream(0).record(&mut *of_b).unwrap();
        assert!(of_a.elapsed_ns(&*of_b).is_err());
        assert_eq!((a.refused(), b.refused(), a.live_events()), (2, 0, 1));
    }

    #[test]
    fn times_are_as_coarse_as_a_devices() {
        let clock = SimClock::manual(0);
        let device = SimDevice::new(0, clock.clone()).offset_ns(1_000).drift_ppm(-5.0);
        let stream = device.stream(0);
        let mut events = [0, 1, 2].map(|_| stream.new_event().unwrap());
        assert!(!events[0].ready().unwrap(), "never recorded");
        stream.record(&mut *events[0]).unwrap();
        stream.work(Duration::from_millis(10));
        stream.record(&mut *events[1]).unwrap();
        clock.advance(Duration::from_secs(3_600));
        stream.record(&mut *events[2]).unwrap();
        assert!(events[1].ready().unwrap() && !events[2].ready().unwrap());
        assert!(events[0].elapsed_ns(&*events[2]).is_err(), "not ready");
        clock.advance(Duration::from_secs(1));
        let [short, hour] = [1, 2].map(|i| events[0].elapsed_ns(&*events[i]).unwrap());
        assert!((short - 10_001_000).abs() < 100, "{short}");
        assert!(
            (hour - 3_600_000_000_000 + 18_000_000).abs() < 300_000 && hour % 1_000 == 0,
            "f32 milliseconds: {hour}"
        );
        assert!(events[1].elapsed_ns(&*events[0]).unwrap() < 0);
    }

    #[test]
    fn faults_come_when_they_are_asked_for() {
        let clock = SimClock::manual(0);
        let device = SimDevice::new(0, clock.clone());
        let stream = device.stream(0);
        let mut event = stream.new_event().unwrap();
        device.lose(1);
        stream.record(&mut *event).unwrap();
        clock.advance(Duration::from_secs(100));
        assert!(!event.ready().unwrap());
        stream.record(&mut *event).unwrap();
        clock.advance(Duration::from_secs(1));
        assert!(event.ready().unwrap());
        device.fail(Some("gone"));
        assert_eq!(
            (event.ready().unwrap_err().0, stream.side().unwrap_err().0),
            ("gone".to_owned(), "gone".to_owned())
        );
        device.fail(None);
        device.refuse_side();
        assert!(stream.side().is_err() && event.ready().unwrap());
    }
}
