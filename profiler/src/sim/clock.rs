//! The time in which a simulated device works.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// True time, in nanoseconds: CLOCK_MONOTONIC, or a clock that a test moves. Clones are the same clock.
#[derive(Clone, Debug)]
pub struct SimClock(Source);

#[derive(Clone, Debug)]
enum Source {
    Real,
    Manual { now_ns: Arc<AtomicI64>, step_ns: i64 },
}

impl SimClock {
    /// CLOCK_MONOTONIC, which the profiler has as well: the device works in real time.
    #[must_use]
    pub fn real() -> Self {
        Self(Source::Real)
    }

    /// Stands at `now_ns` until it is moved.
    #[must_use]
    pub fn manual(now_ns: i64) -> Self {
        Self(Source::Manual { now_ns: Arc::new(AtomicI64::new(now_ns)), step_ns: 0 })
    }

    /// Makes every look at the clock take a while, as it does: a loop that waits for a moment then gets there.
    #[must_use]
    pub fn with_step(self, step: Duration) -> Self {
        match self.0 {
            Source::Real => self,
            Source::Manual { now_ns, .. } => Self(Source::Manual { now_ns, step_ns: nanoseconds(step) }),
        }
    }

    /// Now, nanoseconds.
    #[must_use]
    pub fn now_ns(&self) -> i64 {
        match &self.0 {
            Source::Real => dflash_sys::monotonic_ns(),
            Source::Manual { now_ns, step_ns } => now_ns.fetch_add(*step_ns, Ordering::Relaxed) + step_ns,
        }
    }

    /// Lets so much time pass: a manual clock is moved, a real one waited for.
    pub(super) fn pass(&self, duration: Duration) {
        self.advance(duration);
        if let Source::Real = self.0 {
            let until = self.now_ns() + nanoseconds(duration);
            while self.now_ns() < until {
                std::hint::spin_loop();
            }
        }
    }

    /// Moves a manual clock on; a real one moves by itself.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual { now_ns, .. } = &self.0 {
            now_ns.fetch_add(nanoseconds(by), Ordering::Relaxed);
        }
    }
}

pub(crate) fn nanoseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}
