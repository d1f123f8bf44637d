//! Keeps the view from becoming a load of its own: the numbers of many lanes cost milliseconds, and are computed the less
//! often the longer they take.

use std::time::{Duration, Instant};

/// Time between two computations ÷ time that one took.
const REST: u32 = 150;
/// However long it takes, the numbers are never older than this.
const OLDEST: Duration = Duration::from_secs(10);

/// Decides when to compute again.
#[derive(Debug, Default)]
pub struct Governor {
    last: Option<(Instant, Duration)>,
}

impl Governor {
    /// Whether it is time.
    #[must_use]
    pub fn is_due(&self, now: Instant) -> bool {
        self.last
            .is_none_or(|(ended, took)| now.saturating_duration_since(ended) >= took.saturating_mul(REST).min(OLDEST))
    }

    /// Runs `compute`, and remembers how long it took.
    pub fn run<T>(&mut self, compute: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = compute();
        self.last = Some((Instant::now(), began.elapsed()));
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rests_in_proportion_and_never_for_ever() {
        let began = Instant::now();
        let took = |milliseconds| Governor { last: Some((began, Duration::from_millis(milliseconds))) };
        assert!(Governor::default().is_due(began));
        assert!(!took(10).is_due(began + Duration::from_millis(1400)));
        assert!(took(10).is_due(began + Duration::from_millis(1500)));
        assert!(took(60_000).is_due(began + OLDEST));
    }
}
