//! What lanes, counters and the writer's thread share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::Thread;

use rtrb::Consumer;

use super::clock::Clock;
use super::cpu::slots::LaneSlot;
use super::event::{Event, Remark};

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
    pub remarks: SyncSender<Remark>,
    pub remarks_emitted: AtomicU64,
    pub remarks_dropped: AtomicU64,
    /// Why the recording stopped.
    pub trouble: Mutex<Option<String>>,
    pub writer: OnceLock<Thread>,
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
    pub emitted: AtomicU64,
    pub dropped: AtomicU64,
    pub misplaced: AtomicU64,
}

impl Hub {
    /// Hands a sample, mark or stack to the writer; `false`: there is no room, which is counted.
    pub(crate) fn remark(&self, remark: Remark) -> bool {
        self.remarks_emitted.fetch_add(1, Ordering::Relaxed);
        let sent = self.remarks.try_send(remark).is_ok();
        if !sent {
            self.remarks_dropped.fetch_add(1, Ordering::Relaxed);
        }
        sent
    }

    /// The number of a counter. The same name and unit give the same one.
    pub(crate) fn counter(&self, name: &str, unit: &str) -> u32 {
        let mut counters = lock(&self.counters);
        let found = counters.iter().position(|(n, u)| n == name && u == unit);
        let number = found.unwrap_or_else(|| {
            counters.push((name.to_owned(), unit.to_owned()));
            counters.len() - 1
        });
        number as u32
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
