//! The device: its clock, its faults, and its account of events.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::clock::{SimClock, nanoseconds};
use super::stream::SimStream;
use crate::DeviceError;

/// A simulated device. Clones are the same device.
#[derive(Clone, Debug)]
pub struct SimDevice(pub(super) Arc<Shared>);

#[derive(Debug)]
pub(super) struct Shared {
    pub index: i16,
    pub clock: SimClock,
    offset_ns: i64,
    drift_ppm: f64,
    granularity_ns: i64,
    /// Time from a record to its moment, on an idle stream.
    latency_ns: AtomicI64,
    failure: Mutex<Option<String>>,
    /// Records whose moment never comes.
    pub to_lose: AtomicU64,
    pub no_side: AtomicBool,
    side_delay_ns: AtomicI64,
    pub created: AtomicU64,
    pub destroyed: AtomicU64,
    pub recorded: AtomicU64,
    pub asked: AtomicU64,
    pub refused: AtomicU64,
    pub next_side: AtomicI64,
}

impl SimDevice {
    /// A device whose clock began at 0 on the clock's 0, without drift, in ticks of 32 ns; a record takes 3.5 µs.
    #[must_use]
    pub fn new(index: i16, clock: SimClock) -> Self {
        Self(Arc::new(Shared {
            index,
            clock,
            offset_ns: 0,
            drift_ppm: 0.0,
            granularity_ns: 32,
            latency_ns: AtomicI64::new(3_500),
            failure: Mutex::default(),
            to_lose: AtomicU64::new(0),
            no_side: AtomicBool::new(false),
            side_delay_ns: AtomicI64::new(0),
            created: AtomicU64::new(0),
            destroyed: AtomicU64::new(0),
            recorded: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            next_side: AtomicI64::new(-1),
        }))
    }

    /// Sets what the device's clock shows at the clock's 0, nanoseconds. Before the first stream is made.
    #[must_use]
    pub fn offset_ns(self, offset_ns: i64) -> Self {
        self.with(|shared| shared.offset_ns = offset_ns)
    }

    /// Sets how many millionths too fast the device's clock runs. Before the first stream is made.
    #[must_use]
    pub fn drift_ppm(self, drift_ppm: f64) -> Self {
        self.with(|shared| shared.drift_ppm = drift_ppm)
    }

    /// Sets the tick of the device's clock, nanoseconds. Before the first stream is made.
    #[must_use]
    pub fn granularity_ns(self, granularity_ns: i64) -> Self {
        self.with(|shared| shared.granularity_ns = granularity_ns.max(1))
    }

    fn with(mut self, change: impl FnOnce(&mut Shared)) -> Self {
        // Shared already: then it stays as it is.
        if let Some(shared) = Arc::get_mut(&mut self.0) {
            change(shared);
        }
        self
    }

    /// A stream; the same id twice gives two streams of one key.
    #[must_use]
    pub fn stream(&self, id: i64) -> SimStream {
        SimStream::new(self.clone(), id)
    }

    /// From now on a record on an idle stream takes so long to become ready.
    pub fn set_latency(&self, latency: Duration) {
        self.0.latency_ns.store(nanoseconds(latency), Ordering::Relaxed);
    }

    /// From now on a record on a side stream takes so much longer.
    pub fn delay_side(&self, delay: Duration) {
        self.0.side_delay_ns.store(nanoseconds(delay), Ordering::Relaxed);
    }

    /// The next `count` records never become ready.
    pub fn lose(&self, count: u64) {
        self.0.to_lose.store(count, Ordering::Relaxed);
    }

    /// From now on every call fails with this text; `None`: calls work again.
    pub fn fail(&self, text: Option<&str>) {
        *self.0.failure() = text.map(str::to_owned);
    }

    /// From now on the device gives no side streams.
    pub fn refuse_side(&self) {
        self.0.no_side.store(true, Ordering::Relaxed);
    }

    /// Events that exist.
    #[must_use]
    pub fn live_events(&self) -> u64 {
        self.created_events() - self.0.destroyed.load(Ordering::Relaxed)
    }

    /// Events that were ever made.
    #[must_use]
    pub fn created_events(&self) -> u64 {
        self.0.created.load(Ordering::Relaxed)
    }

    /// Records that were made, on side streams too.
    #[must_use]
    pub fn records(&self) -> u64 {
        self.0.recorded.load(Ordering::Relaxed)
    }

    /// Questions whether an event is ready, of side streams too.
    #[must_use]
    pub fn asked(&self) -> u64 {
        self.0.asked.load(Ordering::Relaxed)
    }

    /// Calls that a real device would refuse, e.g. with another device's event.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.0.refused.load(Ordering::Relaxed)
    }

    /// What the device's clock shows at a moment of the true clock, nanoseconds.
    #[must_use]
    pub fn device_ns(&self, true_ns: i64) -> i64 {
        let shared = &self.0;
        let drifted = true_ns + shared.offset_ns + (true_ns as f64 * shared.drift_ppm * 1e-6).round() as i64;
        drifted.div_euclid(shared.granularity_ns) * shared.granularity_ns
    }
}

impl Shared {
    fn failure(&self) -> MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// What every call begins with.
    pub(super) fn check(&self) -> Result<(), DeviceError> {
        self.failure().clone().map_or(Ok(()), |text| Err(DeviceError(text)))
    }

    pub(super) fn refuse<T>(&self, text: &str) -> Result<T, DeviceError> {
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(DeviceError(text.to_owned()))
    }

    pub(super) fn latency_ns(&self, side: bool) -> i64 {
        let more = if side { self.side_delay_ns.load(Ordering::Relaxed) } else { 0 };
        self.latency_ns.load(Ordering::Relaxed) + more
    }
}
