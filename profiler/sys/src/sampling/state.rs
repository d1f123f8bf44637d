//! Everything that the handler uses: made at the first start, kept for ever.

use std::cell::UnsafeCell;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};
use std::thread;

use super::handler::Labeller;
use super::modules::{Modules, Unwinder};
use super::ring::Ring;
use super::walker::Walker;
use super::window::Way;

/// Samples that may be ahead of their reader: a twentieth of a second of 80 threads at 1000 Hz; 5 MB once used.
const SAMPLES: usize = 4096;
/// Answers that may be ahead of the one who asked.
const ANSWERS: usize = 512;

static STATE: OnceLock<State> = OnceLock::new();

pub(super) struct State {
    pub samples: Ring,
    pub answers: Ring,
    pub label: Labeller,
    /// Whether timers' signals are samples; else they come late, and are nothing.
    pub sampling: AtomicBool,
    /// The request that is being answered; 0: none.
    pub request: AtomicU32,
    /// Samples that found no place in the ring, or no walker.
    pub full: AtomicU64,
    pub busy: AtomicU64,
    unwinder: AtomicPtr<Unwinder>,
    modules: Mutex<Modules>,
    walkers: Vec<Guarded>,
}

struct Guarded {
    taken: AtomicBool,
    walker: UnsafeCell<Walker>,
}

// SAFETY: the walker is touched by whoever turned `taken` from false to true, until they turn it back.
unsafe impl Sync for Guarded {}
// SAFETY: a walker is plain memory and file descriptors, and belongs to no thread.
unsafe impl Send for Guarded {}

/// The state, if there ever was a start.
pub(super) fn get() -> Option<&'static State> {
    STATE.get()
}

/// The state, made now if need be. `label` counts at the first call alone.
pub(super) fn get_or_make(label: Labeller) -> io::Result<&'static State> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = lock(&MAKING);
    if let Some(state) = STATE.get() {
        return Ok(state);
    }
    let way = Way::choose()?;
    // A handler that lost its core keeps its walker, so there are more of them than cores.
    let walkers = 2 * thread::available_parallelism().map_or(8, usize::from).clamp(2, 32);
    let guarded = |way| Guarded { taken: AtomicBool::new(false), walker: UnsafeCell::new(Walker::new(way)) };
    // A pipe carries one stack at a time.
    let ways = std::iter::repeat_with(|| if way == Way::Direct { Ok(way) } else { Way::pipe() });
    let walkers: Vec<Guarded> = ways.take(walkers).map(|way| way.map(guarded)).collect::<io::Result<_>>()?;
    Ok(STATE.get_or_init(|| State {
        samples: Ring::new(SAMPLES),
        answers: Ring::new(ANSWERS),
        label,
        sampling: AtomicBool::new(false),
        request: AtomicU32::new(0),
        full: AtomicU64::new(0),
        busy: AtomicU64::new(0),
        unwinder: AtomicPtr::default(),
        modules: Mutex::default(),
        walkers,
    }))
}

impl State {
    /// Learns of libraries that were loaded since. Not for handlers.
    pub(super) fn refresh(&self) {
        if let Some(unwinder) = lock(&self.modules).refresh() {
            // Leaked on purpose, as its predecessors: a handler may be using one. They share the unwind data.
            self.unwinder.store(Box::leak(Box::new(unwinder)), Ordering::Release);
        }
    }

    /// Runs `walk` with a walker that is free; `false`: none is.
    pub(super) fn with_walker(&self, tid: u32, walk: impl FnOnce(&mut Walker, &Unwinder)) -> bool {
        // SAFETY: null, or a leaked unwinder, which is never written again.
        let Some(unwinder) = (unsafe { self.unwinder.load(Ordering::Acquire).as_ref() }) else { return false };
        // From its own place on, so that a thread finds its own rules in the cache again.
        let (count, first) = (self.walkers.len(), tid as usize);
        for place in (0..count).filter_map(|i| self.walkers.get((first + i) % count)) {
            if !place.taken.swap(true, Ordering::Acquire) {
                // SAFETY: `taken` was false and is true now, so the walker is this call's.
                walk(unsafe { &mut *place.walker.get() }, unwinder);
                place.taken.store(false, Ordering::Release);
                return true;
            }
        }
        false
    }
}

/// Locks; a thread that panicked while holding the lock has left nothing half-done.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}
