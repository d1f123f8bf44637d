//! How far two clocks are apart, as a line from reading to reading.

use std::sync::Arc;

/// What is added to a rank's times to have them on rank 0's monotonic clock: the first reading, and how it changes later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shift {
    first_ns: i64,
    pub(crate) drift: Arc<Drift>,
}

impl From<i64> for Shift {
    /// The same at all times, nanoseconds.
    fn from(first_ns: i64) -> Self {
        Self { first_ns, drift: Arc::default() }
    }
}

impl Shift {
    /// What the attempt's first reading says, nanoseconds.
    #[must_use]
    pub fn first_ns(&self) -> i64 {
        self.first_ns
    }

    /// A time of the rank's own clock on rank 0's, nanoseconds. What is later there is not earlier here.
    #[must_use]
    pub fn moved(&self, own_ns: i64) -> i64 {
        self.drift.at(own_ns.saturating_add(self.first_ns))
    }
}

/// What must be added beyond the first reading: straight from reading to reading, the same before the first and after the
/// last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drift {
    /// Times on the clock of the first reading, ascending, and what is added then, nanoseconds.
    readings: Vec<(i64, i64)>,
}

impl Drift {
    /// Whether nothing is ever added.
    pub(crate) fn is_none(&self) -> bool {
        self.readings.iter().all(|(_, more_ns)| *more_ns == 0)
    }

    /// Time of the last reading.
    pub(crate) fn end_ns(&self) -> Option<i64> {
        self.readings.last().map(|(time_ns, _)| *time_ns)
    }

    /// Adds a reading; one that is not later than the last is left out. A clock that was set back by more than the time since
    /// the last reading stands still meanwhile: time does not go back.
    pub(crate) fn push(&mut self, time_ns: i64, more_ns: i64) {
        let Some((last_ns, last_more_ns)) = self.readings.last().copied() else {
            return self.readings.push((time_ns, more_ns));
        };
        if time_ns > last_ns {
            let least = last_ns.saturating_add(last_more_ns).saturating_sub(time_ns);
            self.readings.push((time_ns, more_ns.max(least)));
        }
    }

    /// What a time becomes.
    pub(crate) fn at(&self, ns: i64) -> i64 {
        let after = self.readings.partition_point(|(time_ns, _)| *time_ns <= ns);
        let before = after.checked_sub(1).and_then(|place| self.readings.get(place));
        match (before, self.readings.get(after)) {
            (Some((from, a)), Some((to, b))) => {
                let wide = i128::from;
                // A damaged file's readings may be as far apart as numbers of 64 bits can be.
                let product = (wide(*b) - wide(*a)).saturating_mul(wide(ns) - wide(*from));
                let since = product / (wide(*to) - wide(*from));
                // Between two numbers of 64 bits.
                ns.saturating_add(*a).saturating_add(i64::try_from(since).unwrap_or_default())
            }
            (Some((_, more_ns)), None) | (None, Some((_, more_ns))) => ns.saturating_add(*more_ns),
            (None, None) => ns,
        }
    }

    /// What a stretch of time becomes: begin and duration.
    pub(crate) fn stretch(&self, begin_ns: i64, duration_ns: u64) -> (i64, u64) {
        let moved_ns = self.at(begin_ns);
        let end_ns = self.at(begin_ns.saturating_add_unsigned(duration_ns));
        (moved_ns, u64::try_from(end_ns.saturating_sub(moved_ns)).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::Drift;

    fn drift(readings: &[(i64, i64)]) -> Drift {
        let mut drift = Drift::default();
        readings.iter().for_each(|(time_ns, more_ns)| drift.push(*time_ns, *more_ns));
        drift
    }

    #[test]
    fn straight_between_readings_and_the_same_outside() {
        let drift = drift(&[(1_000, 0), (2_000, 100), (3_000, -100)]);
        let moved = [0, 1_000, 1_500, 2_000, 2_500, 3_000, 9_000].map(|ns| drift.at(ns));
        assert_eq!(moved, [0, 1_000, 1_550, 2_100, 2_500, 2_900, 8_900]);
        assert_eq!(drift.stretch(1_000, 1_000), (1_000, 1_100));
        assert_eq!(Drift::default().at(-7), -7);
    }

    #[test]
    fn time_never_goes_back() {
        // The other clock steps by far more than the time between two readings, there and back; one comes twice.
        let drift = drift(&[(0, 0), (100, 5_000), (200, -5_000), (200, 70), (300, -5_000), (9_000, -30)]);
        let moved: Vec<i64> = (-50..9_100).map(|ns| drift.at(ns)).collect();
        assert!(moved.is_sorted());
        assert_eq!((drift.at(100), drift.at(200), drift.at(9_000)), (5_100, 5_100, 8_970));
        let far = self::drift(&[(i64::MIN, i64::MAX), (0, i64::MIN), (i64::MAX, i64::MAX)]);
        assert!([i64::MIN, -1, 0, 1, i64::MAX].map(|ns| far.at(ns)).is_sorted());
        let farther = self::drift(&[(i64::MIN, i64::MIN), (i64::MAX, i64::MAX)]);
        assert_eq!([i64::MIN, i64::MAX].map(|ns| farther.at(ns)), [i64::MIN, i64::MAX]);
        // Its product has 128 bits and more: whatever comes out, it is no panic.
        let _ = farther.at(i64::MAX - 1);
    }
}
