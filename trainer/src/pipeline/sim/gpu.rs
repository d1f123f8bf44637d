//! Simulated GPUs: one a number, shared by the workers on it.

use crate::config::DeviceChoice;
use dflash_profiler::sim::{SimClock, SimDevice, SimStream};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A GPU with two streams, and how long it has worked.
#[derive(Debug)]
pub(super) struct Gpu {
    /// `sim:0`, ….
    pub(super) name: String,
    main: SimStream,
    copy: SimStream,
    /// Held while work is queued: two threads may share a stream.
    queueing: Mutex<()>,
    busy_ns: AtomicU64,
}

/// Which stream of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Queue {
    /// Where models run.
    Main,
    /// Where packing and copying go when they have a lane of their own.
    Copy,
}

/// The GPUs by their numbers.
#[derive(Debug, Default)]
pub(super) struct Gpus(BTreeMap<usize, Arc<Gpu>>);

/// The true time.
pub(super) fn clock() -> SimClock {
    SimClock::real()
}

impl Gpus {
    /// The GPU of a choice.
    pub(super) fn get(&mut self, choice: DeviceChoice) -> Arc<Gpu> {
        // All choices are simulated ones: checked with the configuration.
        let number = if let DeviceChoice::Sim(number) = choice { number } else { 0 };
        Arc::clone(self.0.entry(number).or_insert_with(|| Arc::new(Gpu::new(number))))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Gpu> {
        self.0.values().map(Arc::as_ref)
    }
}

impl Gpu {
    fn new(number: usize) -> Self {
        // Clocks of real devices differ by some millionths, too.
        let drift = (number * 7 % 11) as f64 - 5.0;
        let device = SimDevice::new(i16::try_from(number).unwrap_or(i16::MAX), clock()).drift_ppm(drift);
        let (main, copy) = (device.stream(0), device.stream(1));
        Self { name: format!("sim:{number}"), main, copy, queueing: Mutex::new(()), busy_ns: AtomicU64::new(0) }
    }

    pub(super) fn stream(&self, queue: Queue) -> &SimStream {
        match queue {
            Queue::Main => &self.main,
            Queue::Copy => &self.copy,
        }
    }

    /// Queues work that takes so long; returns when it will be done, true nanoseconds.
    pub(super) fn work(&self, queue: Queue, time: Duration) -> i64 {
        let _guard = self.queueing.lock().unwrap_or_else(PoisonError::into_inner);
        let (_, end) = self.stream(queue).work(time);
        self.busy_ns.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
        end
    }

    /// How long it has worked, also what is only queued, nanoseconds.
    pub(super) fn busy_ns(&self) -> u64 {
        self.busy_ns.load(Ordering::Relaxed)
    }
}
