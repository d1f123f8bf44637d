//! Many durations in little room: four bytes each where they are below 4.3 seconds, and no value is rounded.

use crate::stats::Stats;

/// Durations in nanoseconds; their order is not kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values {
    short: Vec<u32>,
    /// Those that take more than 32 bits.
    long: Vec<u64>,
}

impl Values {
    /// Adds one.
    pub(crate) fn push(&mut self, ns: u64) {
        match u32::try_from(ns) {
            Ok(ns) => {
                if self.short.len() == self.short.capacity() {
                    // A vector that doubles would leave up to half of its room empty.
                    self.short.reserve_exact(self.short.len() / 4 + 4);
                }
                self.short.push(ns);
            }
            Err(_) => self.long.push(ns),
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.short.len() + self.long.len()
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, in any order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        self.short.iter().map(|ns| u64::from(*ns)).chain(self.long.iter().copied())
    }

    /// Sorts and summarises them.
    pub(crate) fn stats(&mut self) -> Stats {
        self.short.sort_unstable();
        self.long.sort_unstable();
        let at = |rank: usize| match self.short.get(rank) {
            Some(ns) => u64::from(*ns),
            None => self.long.get(rank - self.short.len()).copied().unwrap_or(0),
        };
        Stats::by_rank(self.len(), crate::stats::sum(self.iter()), at)
    }
}

#[cfg(test)]
mod tests {
    use super::Values;
    use crate::stats::Stats;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn says_what_a_plain_list_says(mut list in prop::collection::vec(prop_oneof![any::<u64>(), 0_u64..10_000], 0..40)) {
            let mut values = Values::default();
            list.iter().for_each(|ns| values.push(*ns));
            prop_assert_eq!(values.len(), list.len());
            prop_assert_eq!(values.stats(), Stats::of(&mut list));
        }
    }
}
