//! How much is recorded, for the whole process: what a span that is off looks at, and all it looks at.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Mutex, Once};

use crate::Level;

static LEVEL: AtomicU8 = AtomicU8::new(Level::Off as u8);

/// This is a forked child of a process with a profiler.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Profilers that run. Without one there is nothing to record for.
static RUNNING: Mutex<usize> = Mutex::new(0);

/// The level as a number; 0 is off.
#[inline(always)]
pub(crate) fn current() -> u8 {
    LEVEL.load(Ordering::Relaxed)
}

/// Changes how much is recorded, while the run goes on. It is one level for the whole process; spans that are open keep
/// the level that they began with.
pub fn set_level(level: Level) {
    LEVEL.store(level as u8, Ordering::Relaxed);
}

/// How much is recorded.
#[must_use]
pub fn level() -> Level {
    match current() {
        0 => Level::Off,
        1 => Level::Stages,
        _ => Level::Layers,
    }
}

/// A profiler starts. Another one's higher level stays.
pub(crate) fn started(level: Level) {
    let mut running = RUNNING.lock().unwrap_or_else(|e| e.into_inner());
    *running += 1;
    if *running == 1 {
        set_level(level);
    } else {
        LEVEL.fetch_max(level as u8, Ordering::Relaxed);
    }
}

/// A forked child records nothing: the threads that write are its parent's. Locks of theirs may be held for ever there,
/// and a device cannot be used.
pub(crate) fn off_in_forked_children() {
    static ONCE: Once = Once::new();
    extern "C" fn off() {
        LEVEL.store(Level::Off as u8, Ordering::Relaxed);
        FORKED.store(true, Ordering::Relaxed);
    }
    ONCE.call_once(|| dflash_sys::in_forked_children(off));
}

/// Whether this is a forked child: spans that were open at the fork end here as well, but not on their devices.
#[inline]
pub(crate) fn is_forked() -> bool {
    FORKED.load(Ordering::Relaxed)
}

/// A profiler ended; the last one turns recording off.
pub(crate) fn ended() {
    let mut running = RUNNING.lock().unwrap_or_else(|e| e.into_inner());
    *running = running.saturating_sub(1);
    if *running == 0 {
        set_level(Level::Off);
    }
}
