//! A brake: a client that asks as fast as it can takes no core away from the training.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::super::hub::lock;

/// What may come in a second; the rest waits.
const MOST: u32 = 500;
const WINDOW: Duration = Duration::from_secs(1);

/// Counts what comes in each second.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<Option<(Instant, u32)>>);

impl Pace {
    /// Notes that something came. Sleeps up to a second if too much did.
    pub(super) fn step(&self) {
        let wait = self.note(Instant::now());
        if !wait.is_zero() {
            std::thread::sleep(wait);
        }
    }

    fn note(&self, now: Instant) -> Duration {
        let mut window = lock(&self.0);
        let (begin, came) = window.filter(|(begin, _)| now.duration_since(*begin) < WINDOW).unwrap_or((now, 0));
        *window = Some((begin, came + 1));
        if came < MOST { Duration::ZERO } else { WINDOW.saturating_sub(now.duration_since(begin)) }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::{MOST, Pace};

    #[test]
    fn what_is_too_much_waits_for_the_next_second() {
        let (pace, begin) = (Pace::default(), Instant::now());
        assert!((0..MOST).all(|_| pace.note(begin).is_zero()));
        assert_eq!(pace.note(begin + Duration::from_millis(400)), Duration::from_millis(600));
        assert!(pace.note(begin + Duration::from_secs(1)).is_zero());
    }
}
