//! The thread `dflash-sync`: makes what was written survive a crash of the machine, without delaying who writes.

use std::fs::{self, File};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Files that may wait: the current segment, and those that just ended.
const QUEUE: usize = 8;

/// What the thread `dflash-sync` has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SyncStats {
    /// How often data went to the disk.
    pub synced: u64,
    /// How often the last time still ran when the next was due.
    pub skipped: u64,
    /// CPU time of the thread, nanoseconds.
    pub cpu_ns: u64,
    /// What the system said the last time that it failed.
    pub problem: Option<String>,
}

/// Hands files to the thread. It ends when this is dropped, after what it is doing.
#[derive(Debug)]
pub(crate) struct Syncer {
    every: Duration,
    last: Instant,
    skipped: u64,
    queue: Option<SyncSender<File>>,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    busy: AtomicBool,
    synced: AtomicU64,
    cpu_ns: AtomicU64,
    problem: Mutex<Option<String>>,
}

impl Syncer {
    pub(crate) fn start(every: Duration) -> Self {
        let (queue, files) = sync_channel(QUEUE);
        let shared = Arc::new(Shared::default());
        let theirs = Arc::clone(&shared);
        let spawned = thread::Builder::new().name("dflash-sync".to_owned()).spawn(move || theirs.run(&files));
        if let Err(error) = &spawned {
            shared.say(error);
        }
        let queue = spawned.is_ok().then_some(queue);
        Self { every, last: Instant::now(), skipped: 0, queue, shared }
    }

    /// Syncs the current file if it is time, unless the last sync still runs.
    pub(crate) fn tick(&mut self, file: &File) {
        if self.last.elapsed() < self.every {
            return;
        }
        self.last = Instant::now();
        if self.shared.busy.load(Ordering::Acquire) {
            self.skipped += 1;
        } else {
            self.hand_over(file.try_clone());
        }
    }

    /// Syncs a file that nothing is added to any more.
    pub(crate) fn finished(&mut self, file: File) {
        self.hand_over(Ok(file));
    }

    pub(crate) fn stats(&self) -> SyncStats {
        SyncStats {
            synced: self.shared.synced.load(Ordering::Relaxed),
            skipped: self.skipped,
            cpu_ns: self.shared.cpu_ns.load(Ordering::Relaxed),
            problem: self.shared.problem.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    fn hand_over(&mut self, file: io::Result<File>) {
        let Some(queue) = &self.queue else { return };
        match file {
            Ok(file) => {
                self.shared.busy.store(true, Ordering::Release);
                self.skipped += u64::from(queue.try_send(file).is_err());
            }
            Err(error) => self.shared.say(&error),
        }
    }
}

impl Shared {
    fn run(&self, files: &Receiver<File>) {
        for file in files {
            match file.sync_data() {
                Ok(()) => _ = self.synced.fetch_add(1, Ordering::Relaxed),
                Err(error) => self.say(&error),
            }
            self.cpu_ns.store(own_cpu_ns().unwrap_or(0), Ordering::Relaxed);
            self.busy.store(false, Ordering::Release);
        }
    }

    fn say(&self, error: &io::Error) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.to_string());
    }
}

/// CPU time of the calling thread, as the scheduler counts it.
pub(crate) fn own_cpu_ns() -> Option<u64> {
    fs::read_to_string("/proc/thread-self/schedstat").ok()?.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::thread;
    use std::time::{Duration, Instant};

    use super::Syncer;

    #[test]
    fn what_cannot_be_synced_is_said_and_the_next_file_is_synced() {
        let mut syncer = Syncer::start(Duration::ZERO);
        let wait_for = |syncer: &Syncer, what: fn(&super::SyncStats) -> bool| {
            let begin = Instant::now();
            while !what(&syncer.stats()) {
                assert!(begin.elapsed() < Duration::from_secs(120), "{:?}", syncer.stats());
                thread::sleep(Duration::from_millis(1));
            }
        };
        syncer.tick(&File::open("/dev/null").unwrap());
        wait_for(&syncer, |stats| stats.problem.is_some());
        assert_eq!(syncer.stats().synced, 0);
        syncer.finished(tempfile::tempfile().unwrap());
        wait_for(&syncer, |stats| stats.synced == 1);
    }
}
