//! The handle: starts the writer's thread, makes lanes and counters, ends the recording.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use dflash_timeline::record::{Severity, Totals};

use super::control::Control;
use super::cpu::Cpu;
use super::event::Remark;
use super::hub::{Hub, lock};
use super::lane::Lane;
use super::level;
use super::samplers::Samplers;
use super::writer::{Ended, Writer};
use crate::{Error, LaneAccount, Options, Result};

/// A recording that goes on. Clones are handles of the same one; it ends with [`finish`](Self::finish), or when the last
/// handle is dropped.
#[derive(Clone, Debug, Default)]
pub struct Profiler(pub(super) Option<Arc<Inner>>);

#[derive(Debug)]
pub(crate) struct Inner {
    pub hub: Arc<Hub>,
    pub cpu: Cpu,
    pub(super) control: Arc<Control>,
    ring: usize,
    samplers: Mutex<Option<Samplers>>,
    writer: Mutex<Option<JoinHandle<Ended>>>,
    ended: Mutex<Ended>,
    /// The process whose recording this is: a forked child has no part in it.
    process: u32,
}

impl Profiler {
    /// Starts recording into a run. An error here is the last one: later failures never reach the caller, see
    /// [`trouble`](Self::trouble).
    pub fn start(options: Options) -> Result<Self> {
        let (hub, remarks) = Hub::new(&options);
        let hub = Arc::new(hub);
        level::off_in_forked_children();
        let writer = Writer::new(Arc::clone(&hub), remarks, &options)?;
        let handle =
            thread::Builder::new().name("dflash-writer".into()).spawn(|| writer.run_or_say()).map_err(Error::Thread)?;
        // Set here alone, so it cannot be set already.
        let _ = hub.writer.set(handle.thread().clone());
        level::started(options.level);
        let (writer, ended, process) = (Mutex::new(Some(handle)), Mutex::default(), std::process::id());
        let samplers = Mutex::new(Some(Samplers::start(&hub, &options)));
        let control = Control::new(Arc::clone(&hub), &options);
        let (ring, opens) = (options.ring.max(2), options.control);
        let inner =
            Arc::new(Inner { hub, cpu: Cpu::new(options.cpu), control, ring, samplers, writer, ended, process });
        if opens {
            inner.control.open(&inner);
        }
        Ok(Self(Some(inner)))
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
        let (lane, end) = Lane::new(hub, name, device, inner.ring, Arc::clone(&begun));
        inner.control.lanes.add(&end.shared, &begun);
        lock(&hub.new_lanes).push(end);
        lane
    }

    /// Makes a counter, e.g. `queue.batches.depth` in `items`. The same name and unit give the same counter.
    #[must_use]
    pub fn counter(&self, name: &str, unit: &str) -> Counter {
        Counter(self.0.as_ref().map(|inner| (Arc::clone(&inner.hub), inner.hub.counter(name, unit))))
    }

    /// Notes a value that holds for the whole recording, e.g. `queue.batches.capacity` in `items`. At whatever level, and
    /// every ten seconds again: it is in each part of the timeline that is kept or looked at. Noted again, the last value
    /// counts.
    pub fn constant(&self, name: &str, unit: &str, value: f64) {
        let Some(inner) = &self.0 else { return };
        let mut constants = lock(&inner.hub.constants);
        match constants.iter_mut().find(|(n, u, _)| n == name && u == unit) {
            Some(known) => known.2 = value,
            None => constants.push((name.to_owned(), unit.to_owned(), value)),
        }
    }

    /// Notes something in the timeline, at whatever level.
    pub fn mark(&self, severity: Severity, text: &str) {
        if let Some(inner) = &self.0 {
            let at = inner.hub.clock.ticks();
            inner.hub.remark(Remark::Mark { severity, at, text: text.to_owned() });
        }
    }

    /// Why the recording stopped before its end, e.g. because the disk is full; the training goes on. It also stands in
    /// run.json (rank 0's; another's in a file of its own), and in the answer to `dflash ctl RUN status`.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.0.as_ref().and_then(|inner| inner.hub.trouble.text())
    }

    /// Ends the recording: writes what is left and the END block. What is recorded after it is lost. Further calls give
    /// the same totals. Waits for device times that are under way, for
    /// [`finish_deadline`](crate::DeviceTiming::finish_deadline) at most.
    pub fn finish(&self) -> Totals {
        self.0.as_ref().map(|inner| inner.finish()).unwrap_or_default()
    }

    /// What became of the records of each lane; empty before [`finish`](Self::finish).
    #[must_use]
    pub fn lanes(&self) -> Vec<LaneAccount> {
        self.0.as_ref().map(|inner| lock(&inner.ended).lanes.clone()).unwrap_or_default()
    }
}

impl Inner {
    fn finish(&self) -> Totals {
        if std::process::id() != self.process {
            return self.forsake();
        }
        // Held to the end, so that a second caller waits for the totals.
        let mut ended = lock(&self.ended);
        if let Some(samplers) = lock(&self.samplers).take() {
            samplers.end();
        }
        if let Some(handle) = lock(&self.writer).take() {
            // Before the level falls: a kernel capture ends with it, and leaves its mark.
            self.control.close();
            self.cpu.finish(&self.hub);
            level::ended();
            self.hub.stop.store(true, Ordering::Release);
            handle.thread().unpark();
            // A panic in it has been said by itself.
            if let Ok(written) = handle.join() {
                *ended = written;
            }
            self.hub.trouble.end();
        }
        ended.totals
    }

    /// In a forked child: the writer's thread is not here, and the stream is the parent's. Locks may be held for ever by
    /// threads that are not here either.
    #[cold]
    fn forsake(&self) -> Totals {
        if let Ok(mut writer) = self.writer.try_lock() {
            std::mem::forget(writer.take());
        }
        Totals::default()
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
