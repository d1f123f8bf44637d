//! The handle: starts the writer's thread, makes lanes and counters, ends the recording.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::{self, JoinHandle};

use dflash_timeline::record::{Severity, Totals};
use rtrb::RingBuffer;

use super::clock::Clock;
use super::cpu::Cpu;
use super::cpu::slots::LaneSlot;
use super::event::Remark;
use super::hub::{Hub, LaneShared, NewLane, lock};
use super::lane::{Current, Lane};
use super::level;
use super::stats::Stats;
use super::writer::Writer;
use crate::{Error, Options, Result};

/// Samples and marks that may be ahead of the writer.
const REMARKS: usize = 1 << 14;

/// A recording that goes on. Clones are handles of the same one; it ends with [`finish`](Self::finish), or when the last
/// handle is dropped.
#[derive(Clone, Debug, Default)]
pub struct Profiler(Option<Arc<Inner>>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub hub: Arc<Hub>,
    pub cpu: Cpu,
    ring: usize,
    writer: Mutex<Option<JoinHandle<Totals>>>,
    totals: Mutex<Totals>,
}

impl Profiler {
    /// Starts recording into a run. An error here is the last one: later failures never reach the caller, see
    /// [`trouble`](Self::trouble).
    pub fn start(options: Options) -> Result<Self> {
        let (remarks, remarks_to_write) = sync_channel(REMARKS);
        let hub = Arc::new(Hub {
            clock: Clock::get(),
            stop: AtomicBool::new(false),
            new_lanes: Mutex::default(),
            iterations: Mutex::new(HashMap::new()),
            counters: Mutex::default(),
            remarks,
            remarks_emitted: AtomicU64::new(0),
            remarks_dropped: AtomicU64::new(0),
            trouble: Mutex::default(),
            writer: OnceLock::new(),
        });
        let writer = Writer::new(Arc::clone(&hub), remarks_to_write, &options)?;
        let handle =
            thread::Builder::new().name("dflash-writer".into()).spawn(|| writer.run()).map_err(Error::Thread)?;
        // Set here alone, so it cannot be set already.
        let _ = hub.writer.set(handle.thread().clone());
        level::started(options.level);
        let (writer, totals) = (Mutex::new(Some(handle)), Mutex::default());
        Ok(Self(Some(Arc::new(Inner { hub, cpu: Cpu::new(options.cpu), ring: options.ring.max(2), writer, totals }))))
    }

    /// A profiler that records nothing.
    #[must_use]
    pub fn disabled() -> Self {
        Self(None)
    }

    /// What runs, if anything does.
    pub(crate) fn inner(&self) -> std::result::Result<&Inner, String> {
        self.0.as_deref().ok_or_else(|| "nothing is recorded: the profiler is off".to_owned())
    }

    /// Makes a lane. One made again with the same name and device goes on with its iteration numbers.
    pub fn lane(&self, name: &str, device: &str) -> Lane {
        let Some(inner) = &self.0 else { return Lane(None) };
        let hub = &inner.hub;
        let key = (name.to_owned(), device.to_owned());
        let begun = Arc::clone(lock(&hub.iterations).entry(key).or_default());
        let (producer, consumer) = RingBuffer::new(inner.ring);
        let shared = Arc::new(LaneShared {
            name: name.to_owned(),
            device: device.to_owned(),
            open: LaneSlot::claim(name, device),
            emitted: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            misplaced: AtomicU64::new(0),
        });
        lock(&hub.new_lanes).push(NewLane { events: consumer, shared: Arc::clone(&shared) });
        Lane(Some(Box::new(Current {
            clock: hub.clock.clone(),
            open: shared.open.open(),
            shared,
            events: producer,
            hub: Arc::clone(hub),
            begun,
            iteration: None,
            base: 0,
            stats: Stats::default(),
        })))
    }

    /// Makes a counter, e.g. `queue.batches.depth` in `items`. The same name and unit give the same counter.
    #[must_use]
    pub fn counter(&self, name: &str, unit: &str) -> Counter {
        Counter(self.0.as_ref().map(|inner| (Arc::clone(&inner.hub), inner.hub.counter(name, unit))))
    }

    /// Notes something in the timeline, at whatever level.
    pub fn mark(&self, severity: Severity, text: &str) {
        if let Some(inner) = &self.0 {
            let at = inner.hub.clock.ticks();
            inner.hub.remark(Remark::Mark { severity, at, text: text.to_owned() });
        }
    }

    /// Why the recording stopped before its end, e.g. because the disk is full; the training goes on.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.0.as_ref().and_then(|inner| lock(&inner.hub.trouble).clone())
    }

    /// Ends the recording: writes what is left and the END block. What is recorded after it is lost. Further calls give
    /// the same totals.
    pub fn finish(&self) -> Totals {
        self.0.as_ref().map(|inner| inner.finish()).unwrap_or_default()
    }
}

impl Inner {
    fn finish(&self) -> Totals {
        // Held to the end, so that a second caller waits for the totals.
        let mut totals = lock(&self.totals);
        if let Some(handle) = lock(&self.writer).take() {
            self.cpu.finish(&self.hub);
            level::ended();
            self.hub.stop.store(true, Ordering::Release);
            handle.thread().unpark();
            match handle.join() {
                Ok(written) => *totals = written,
                Err(_) => *lock(&self.hub.trouble) = Some("the thread dflash-writer panicked; report this".to_owned()),
            }
        }
        *totals
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.finish();
    }
}

/// A series of readings, e.g. the depth of a queue. Any thread may record.
#[derive(Clone, Debug)]
pub struct Counter(Option<(Arc<Hub>, u32)>);

impl Counter {
    /// Records a reading.
    pub fn record(&self, value: f64) {
        if level::current() != 0
            && let Some((hub, counter)) = &self.0
        {
            hub.remark(Remark::Sample { counter: *counter, at: hub.clock.ticks(), value });
        }
    }
}
