//! Waiting for other threads of this process, for so long and no longer.

use std::time::{Duration, Instant};

/// What one look counts for at most.
const LOOK: Duration = Duration::from_millis(100);

/// How much longer to wait. A process that was stopped meanwhile, or a virtual machine that its host stopped, has not waited
/// for anybody: whoever is waited for stood still as well. So a look counts for a tenth of a second at most.
#[derive(Debug)]
pub(crate) struct Patience {
    left: Duration,
    looked: Instant,
}

impl Patience {
    pub(crate) fn new(most: Duration) -> Self {
        Self { left: most, looked: Instant::now() }
    }

    /// To be asked again and again. Whether it is over.
    pub(crate) fn is_over(&mut self) -> bool {
        self.is_over_at(Instant::now())
    }

    fn is_over_at(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(std::mem::replace(&mut self.looked, now));
        self.left = self.left.saturating_sub(passed.min(LOOK));
        self.left.is_zero()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Patience;

    #[test]
    fn a_machine_that_stood_still_has_not_waited() {
        let mut patience = Patience::new(Duration::from_secs(1));
        let begin = patience.looked;
        let mut is_over = |milliseconds| patience.is_over_at(begin + Duration::from_millis(milliseconds));
        assert!(!is_over(50) && !is_over(100));
        assert!(!is_over(60_000), "a minute in which nobody ran");
        assert!(!is_over(60_100) && !is_over(60_200));
        let looks = (3..).take_while(|look| !is_over(60_000 + 100 * look)).count();
        assert_eq!(looks, 5, "then it goes on as before");
    }
}
