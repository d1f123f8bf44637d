//! What lanes, counters and the writer's thread share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::Thread;

use rtrb::Consumer;

use super::allocator::Charged;
use super::clock::Clock;
use super::control::{Pass, SoFar};
use super::cost::CallCosts;
use super::cpu::slots::LaneSlot;
use super::device::{DeviceHub, DeviceShared};
use super::event::{Event, Remark};
use super::remarks::{Remarks, RemarksToWrite, remarks};
use super::threads::OwnThreads;
use super::trouble::Trouble;
use crate::{Bare, Options};

/// Shared by everything of one profiler.
#[derive(Debug)]
pub(crate) struct Hub {
    pub clock: Clock,
    pub stop: AtomicBool,
    /// Lanes that the writer has not seen yet.
    pub new_lanes: Mutex<Vec<NewLane>>,
    /// Iterations begun on each lane so far, by name and device: a lane that is made again goes on counting.
    pub iterations: Mutex<HashMap<(String, String), Arc<AtomicU64>>>,
    /// Name and unit of counters, by number.
    pub counters: Mutex<Vec<(String, String)>>,
    /// Name, unit and value of counters that do not change.
    pub constants: Mutex<Vec<(String, String, f64)>>,
    pub remarks: Remarks,
    pub threads: OwnThreads,
    /// Why the recording stopped.
    pub trouble: Trouble,
    /// What the writer has written, for whoever asks.
    pub so_far: Mutex<SoFar>,
    pub writer: OnceLock<Thread>,
    pub device: DeviceHub,
    pub bare: Bare,
    /// Once the writer has measured them.
    pub call_costs: OnceLock<CallCosts>,
    /// What has been charged of each device's allocator, by the device.
    pub charged: Mutex<HashMap<String, Arc<Charged>>>,
}

/// A lane's end at the writer.
#[derive(Debug)]
pub(crate) struct NewLane {
    pub events: Consumer<Event>,
    pub shared: Arc<LaneShared>,
}

/// What the writer may look at while a lane works. Only the lane's own thread writes.
#[derive(Debug)]
pub(crate) struct LaneShared {
    pub name: String,
    pub device: String,
    pub open: LaneSlot,
    /// The iteration that runs.
    pub pass: Pass,
    pub emitted: AtomicU64,
    pub dropped: AtomicU64,
    pub misplaced: AtomicU64,
    /// Time that instrumentation took beyond the calls whose cost is known: events, the allocator's counters. Ticks.
    pub spent: AtomicU64,
    pub device_times: DeviceShared,
    /// What the lane's allocator belongs to.
    pub allocator: OnceLock<String>,
}

impl LaneShared {
    pub(crate) fn new(name: &str, device: &str) -> Self {
        Self {
            name: name.to_owned(),
            device: device.to_owned(),
            open: LaneSlot::claim(name, device),
            pass: Pass::default(),
            emitted: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            misplaced: AtomicU64::new(0),
            spent: AtomicU64::new(0),
            device_times: DeviceShared::default(),
            allocator: OnceLock::new(),
        }
    }
}

impl Hub {
    /// The hub of a new profiler, and the writer's end of its samples and marks.
    pub(crate) fn new(options: &Options) -> (Self, RemarksToWrite) {
        let (remarks, remarks_to_write) = remarks();
        let hub = Self {
            clock: Clock::get(),
            stop: AtomicBool::new(false),
            new_lanes: Mutex::default(),
            iterations: Mutex::default(),
            counters: Mutex::default(),
            constants: Mutex::default(),
            remarks,
            threads: OwnThreads::default(),
            trouble: Trouble::new(options),
            so_far: Mutex::default(),
            writer: OnceLock::new(),
            device: DeviceHub::new(options.device.clone()),
            bare: options.bare.clone(),
            call_costs: OnceLock::new(),
            charged: Mutex::default(),
        };
        (hub, remarks_to_write)
    }

    /// Hands a sample, mark or stack to the writer; `false`: there is no room, which is counted.
    pub(crate) fn remark(&self, remark: Remark) -> bool {
        self.remarks.send(remark)
    }

    /// The number of a counter; the same name and unit give the same one.
    pub(crate) fn counter(&self, name: &str, unit: &str) -> u32 {
        let mut counters = lock(&self.counters);
        let found = counters.iter().position(|(n, u)| n == name && u == unit);
        found.unwrap_or_else(|| {
            counters.push((name.to_owned(), unit.to_owned()));
            counters.len() - 1
        }) as u32
    }

    /// Wakes the writer before its time.
    #[cold]
    pub(crate) fn wake(&self) {
        if let Some(thread) = self.writer.get() {
            thread.unpark();
        }
    }
}

/// Adds to a counter that only this thread writes.
#[inline]
pub(crate) fn bump(counter: &AtomicU64, by: u64) {
    counter.store(counter.load(Ordering::Relaxed) + by, Ordering::Relaxed);
}

/// Locks; a thread that panicked while holding the lock has left nothing half-done.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
