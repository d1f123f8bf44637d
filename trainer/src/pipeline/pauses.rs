//! When nothing was learnt because the drafters were evaluated.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The last such pause of all drafters together.
#[derive(Debug, Default)]
pub(super) struct Pauses(Mutex<Last>);

#[derive(Debug, Default)]
struct Last {
    /// Drafters that are in it.
    inside: usize,
    began: Option<Instant>,
    /// `None`: it goes on.
    ended: Option<Instant>,
}

impl Pauses {
    /// A drafter begins to pause.
    pub(super) fn begin(&self) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if last.inside == 0 {
            (last.began, last.ended) = (Some(Instant::now()), None);
        }
        last.inside += 1;
    }

    /// A drafter goes on.
    pub(super) fn end(&self) {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.inside = last.inside.saturating_sub(1);
        if last.inside == 0 {
            last.ended = Some(Instant::now());
        }
    }

    /// How much of the time since `began` was a pause.
    pub(super) fn since(&self, began: Instant) -> Duration {
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(begin) = last.began else { return Duration::ZERO };
        let end = last.ended.unwrap_or_else(Instant::now);
        end.saturating_duration_since(begin.max(began))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_overlaps_a_pause_is_one() {
        let pauses = Pauses::default();
        let before = Instant::now();
        assert_eq!(pauses.since(before), Duration::ZERO);
        pauses.begin();
        pauses.begin();
        std::thread::sleep(Duration::from_millis(20));
        let within = Instant::now();
        pauses.end();
        assert!(pauses.since(before) >= Duration::from_millis(20), "the other drafter pauses yet");
        pauses.end();
        let (all, part) = (pauses.since(before), pauses.since(within));
        assert!(all >= Duration::from_millis(20) && part <= all - Duration::from_millis(20));
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!((pauses.since(before), pauses.since(Instant::now())), (all, Duration::ZERO));
    }
}
