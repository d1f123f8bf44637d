//! Sampling threads that use CPU time.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

use super::handler::Labeller;
use super::record::Sample;
use super::signal::Installed;
use super::state::{self, State};
use super::timer::ThreadTimer;

static RUNS: AtomicBool = AtomicBool::new(false);

/// Sampling that goes on, of the threads that are [watched](Self::watch). One at a time in a process; it ends when
/// dropped, and the timers should have been before.
#[derive(Debug)]
pub struct Sampling {
    // First, so that the handler goes before another session may begin.
    installed: Installed,
    _runs: Runs,
}

#[derive(Debug)]
struct Runs;

impl Drop for Runs {
    fn drop(&mut self) {
        RUNS.store(false, Ordering::Release);
    }
}

impl Sampling {
    /// Installs the handler. `label` counts at the first call of this process, here or in
    /// [`Asking::start`](super::Asking::start).
    ///
    /// # Errors
    /// Another one runs, no real-time signal is free, or the system does not let a process read its own memory.
    pub fn start(label: Labeller) -> io::Result<Self> {
        if RUNS.swap(true, Ordering::AcqRel) {
            return Err(io::Error::other("another profiler of this process samples already"));
        }
        let runs = Runs;
        let state = state::get_or_make(label)?;
        state.refresh();
        let session = Self { installed: Installed::new()?, _runs: runs };
        // What came late in an earlier session.
        while state.samples.pop(|_| ()) {}
        state.full.store(0, Ordering::Relaxed);
        state.busy.store(0, Ordering::Relaxed);
        state.sampling.store(true, Ordering::Release);
        Ok(session)
    }

    /// Samples thread `tid`, which must not block the signal, `hz` times in each second of its CPU time, until the timer
    /// is dropped. `hint` is for the labeller.
    ///
    /// The kernel looks at such timers at its ticks (100 to 1000 a second), so that this many samples may not come.
    ///
    /// # Errors
    /// The thread has ended, or there are as many timers as `ulimit -i` allows.
    pub fn watch(&self, tid: u32, hz: u32, hint: u64) -> io::Result<ThreadTimer> {
        ThreadTimer::new(self.signal(), tid, hz, hint)
    }

    /// The signal in use.
    #[must_use]
    pub fn signal(&self) -> i32 {
        self.installed.signal()
    }

    /// Whether somebody installed a handler of theirs for the signal since.
    #[must_use]
    pub fn taken_over(&self) -> bool {
        !self.installed.is_ours()
    }

    /// Learns of libraries that were loaded since. They stay loaded from then on.
    pub fn refresh(&self) {
        if let Some(state) = state::get() {
            state.refresh();
        }
    }

    /// Shows the oldest sample to `use_it`; `false`: there is none.
    pub fn next(&mut self, use_it: impl FnOnce(&Sample)) -> bool {
        state::get().is_some_and(|state| state.samples.pop(use_it))
    }

    /// Samples that were lost since the start, because they were not taken with [`next`](Self::next) in time, or because
    /// more handlers than twice the cores ran at once.
    #[must_use]
    pub fn lost(&self) -> u64 {
        let sum = |state: &State| state.full.load(Ordering::Relaxed) + state.busy.load(Ordering::Relaxed);
        state::get().map_or(0, sum)
    }
}

impl Drop for Sampling {
    fn drop(&mut self) {
        if let Some(state) = state::get() {
            state.sampling.store(false, Ordering::Release);
        }
    }
}
