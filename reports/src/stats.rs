//! Summary statistics of durations: exact up to 65,536 values; beyond, percentiles come from buckets (`values.rs`).

use serde::Serialize;

/// What is said about a set of durations, nanoseconds. All zero when there were none (`count` tells).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Stats {
    /// Number of values.
    pub count: u64,
    /// Their sum.
    pub total_ns: u64,
    /// Their mean.
    pub mean_ns: f64,
    /// Median, by nearest rank.
    pub p50_ns: u64,
    /// 90th percentile, by nearest rank.
    pub p90_ns: u64,
    /// 95th percentile, by nearest rank.
    pub p95_ns: u64,
    /// 99th percentile, by nearest rank.
    pub p99_ns: u64,
    /// The largest.
    pub max_ns: u64,
}

impl Stats {
    /// Sorts the values and summarises them.
    #[must_use]
    pub fn of(values: &mut [u64]) -> Self {
        values.sort_unstable();
        let values = &*values;
        Self::by_rank(values.len(), sum(values.iter().copied()), |rank| values.get(rank).copied().unwrap_or(0))
    }

    /// Summarises sorted values, of which `at` gives the one of a rank, from 0.
    pub(crate) fn by_rank(count: usize, total_ns: u64, at: impl Fn(usize) -> u64) -> Self {
        let percentile = |percent| if count == 0 { 0 } else { at(rank(count, percent)) };
        Self {
            count: count as u64,
            total_ns,
            mean_ns: if count == 0 { 0.0 } else { total_ns as f64 / count as f64 },
            p50_ns: percentile(50),
            p90_ns: percentile(90),
            p95_ns: percentile(95),
            p99_ns: percentile(99),
            max_ns: percentile(100),
        }
    }

    /// The same as `None` when there were no values: N/A is not 0.
    #[must_use]
    pub fn known(self) -> Option<Self> {
        (self.count > 0).then_some(self)
    }
}

/// The percentile by nearest rank: the smallest value that at least `percent` % of the values do not exceed.
/// It is always one of the values. `None` if there are none.
#[must_use]
pub fn percentile<T: Copy>(sorted: &[T], percent: usize) -> Option<T> {
    sorted.get(rank(sorted.len(), percent)).copied()
}

/// Where a percentile stands among sorted values, from 0.
pub(crate) fn rank(count: usize, percent: usize) -> usize {
    (count * percent.min(100)).div_ceil(100).max(1) - 1
}

/// The median, the mean of the middle two. `None` if there are no values.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[sorted.len() / 2 - 1], upper) })
}

/// A sum that stays at the most there is: no file, however damaged, makes it a small number.
pub(crate) fn sum(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}

/// The same, one value at a time.
pub(crate) fn add(sum: &mut u64, value: u64) {
    *sum = sum.saturating_add(value);
}

/// `part / whole`, and 0 when the whole is.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::{Stats, percentile};

    #[test]
    fn percentiles_are_values_that_occurred() {
        assert_eq!(percentile(&[1, 2, 3, 4], 50), Some(2));
        assert_eq!(percentile(&[1, 2, 3], 50), Some(2));
        let twenty: Vec<u64> = (1..=20).collect();
        assert_eq!(percentile(&twenty, 95), Some(19));
        assert_eq!(percentile(&twenty, 100), Some(20));
        assert_eq!(percentile(&twenty, 0), Some(1));
        assert_eq!(percentile::<u64>(&[], 50), None);
    }

    #[test]
    fn nothing_is_known_of_no_values() {
        assert_eq!(Stats::of(&mut []).known(), None);
        assert_eq!(Stats::of(&mut [7]).known().map(|s| (s.p50_ns, s.p95_ns, s.max_ns)), Some((7, 7, 7)));
    }
}
