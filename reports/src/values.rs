//! Many durations in little room: each as it is, four bytes where it is below 4.3 seconds, and from 65,536 values on as
//! counts by bucket, so that what is kept does not grow with the run.

mod counts;
mod ratios;

use self::counts::Counts;
pub(crate) use self::ratios::Ratios;
use crate::stats::Stats;

/// So many values are kept as they are, and their percentiles are exact. Beyond, a percentile is the middle of a bucket,
/// at most 0.2 % off; count, sum, mean and maximum stay exact.
pub const EXACT: usize = 1 << 16;

/// Durations in nanoseconds; their order is not kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    short: Vec<u32>,
    /// Those that take more than 32 bits.
    long: Vec<u64>,
    /// All of them, once there are many.
    counts: Option<Box<Counts>>,
    count: usize,
    total_ns: u64,
    extremes: Option<(u64, u64)>,
}

impl Values {
    /// Adds one.
    pub(crate) fn push(&mut self, ns: u64) {
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.extremes = Some(self.extremes.map_or((ns, ns), |(least, most)| (least.min(ns), most.max(ns))));
        if let Some(counts) = &mut self.counts {
            counts.push(ns);
            return;
        }
        match u32::try_from(ns) {
            Ok(ns) => {
                if self.short.len() == self.short.capacity() {
                    // A vector that doubles would leave up to half of its room empty.
                    self.short.reserve_exact(self.short.len() / 4 + 1);
                }
                self.short.push(ns);
            }
            Err(_) => self.long.push(ns),
        }
        if self.count > EXACT {
            self.counted();
        }
    }

    /// Adds all of another list's.
    pub(crate) fn merge(&mut self, other: Self) {
        if self.counts.is_none() && other.counts.is_none() && self.count + other.count <= EXACT {
            other.iter().for_each(|ns| self.push(ns));
            return;
        }
        let mut other = other;
        let theirs = other.counted();
        self.counted().merge(theirs);
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.extremes = match (self.extremes, other.extremes) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        };
    }

    /// Gives the values up for their counts.
    #[cold]
    fn counted(&mut self) -> &mut Counts {
        let (short, long) = (std::mem::take(&mut self.short), std::mem::take(&mut self.long));
        let counts = self.counts.get_or_insert_default();
        short.into_iter().map(u64::from).chain(long).for_each(|ns| counts.push(ns));
        counts
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Their sum.
    pub(crate) fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// Those that are still kept, in any order.
    fn iter(&self) -> impl Iterator<Item = u64> {
        self.short.iter().map(|ns| u64::from(*ns)).chain(self.long.iter().copied())
    }

    /// Sorts and summarises them.
    pub(crate) fn stats(&mut self) -> Stats {
        self.sort();
        Stats::by_rank(self.count, self.total_ns, |rank| self.at(rank))
    }

    /// Percentiles by nearest rank, in percent; 0 of no values.
    pub(crate) fn percentiles<const N: usize>(&mut self, percents: [usize; N]) -> [u64; N] {
        self.sort();
        percents.map(|percent| if self.count == 0 { 0 } else { self.at(crate::stats::rank(self.count, percent)) })
    }

    fn sort(&mut self) {
        self.short.sort_unstable();
        self.long.sort_unstable();
    }

    /// The value of a rank, from 0, once they are sorted.
    fn at(&self, rank: usize) -> u64 {
        let (least, most) = self.extremes.unwrap_or_default();
        match (&self.counts, self.short.get(rank)) {
            (Some(_), _) if rank + 1 == self.count => most,
            (Some(counts), _) => counts.at(rank).clamp(least, most),
            (None, Some(ns)) => u64::from(*ns),
            (None, None) => self.long.get(rank - self.short.len()).copied().unwrap_or(0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{EXACT, Values};
    use crate::stats::Stats;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn says_what_a_plain_list_says(mut list in prop::collection::vec(prop_oneof![any::<u64>(), 0_u64..10_000], 0..40), cut in 0_usize..40) {
            let (mut values, mut other) = (Values::default(), Values::default());
            for (at, ns) in list.iter().enumerate() {
                if at < cut { values.push(*ns) } else { other.push(*ns) }
            }
            values.merge(other);
            prop_assert_eq!(values.len(), list.len());
            prop_assert_eq!(values.stats(), Stats::of(&mut list));
        }
    }

    #[test]
    fn of_many_values_the_percentiles_are_near_and_the_rest_is_exact() {
        let spread = |at: u64| 1_000 + (at * 7_919) % 999_983 * (1 + at % 13) * 1_000;
        for count in [EXACT as u64, EXACT as u64 + 1, 3 * EXACT as u64] {
            let mut list: Vec<u64> = (0..count).map(spread).collect();
            let (mut values, mut other) = (Values::default(), Values::default());
            list.iter().enumerate().for_each(|(at, ns)| if at % 3 == 0 { other.push(*ns) } else { values.push(*ns) });
            values.merge(other);
            let (found, exact) = (values.stats(), Stats::of(&mut list));
            if count <= EXACT as u64 {
                assert_eq!(found, exact);
            }
            assert_eq!((found.count, found.total_ns, found.max_ns), (exact.count, exact.total_ns, exact.max_ns));
            for (a, b) in [
                (found.p50_ns, exact.p50_ns),
                (found.p90_ns, exact.p90_ns),
                (found.p95_ns, exact.p95_ns),
                (found.p99_ns, exact.p99_ns),
            ] {
                assert!(a.abs_diff(b) as f64 <= b as f64 * 0.004, "{a} for {b}");
            }
        }
    }
}
