//! A count for each bucket of values: what is left of many values.

/// Bits of a value below its highest one that choose its bucket.
const DETAIL: u32 = 8;

/// Counts by bucket. Values from 2^n to 2^(n+1) share 256 buckets, so that the middle of one is off by at most 0.2 %.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    /// The bucket of the first count.
    first: usize,
    counts: Vec<u64>,
}

impl Counts {
    pub(super) fn push(&mut self, value: u64) {
        self.add(bucket(value), 1);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        let all = other.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        all.for_each(|(at, count)| self.add(other.first + at, *count));
    }

    fn add(&mut self, bucket: usize, count: u64) {
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let more = self.first - bucket;
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.first = bucket;
        }
        let at = bucket - self.first;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += count;
    }

    /// The middle of the bucket that holds the value of a rank, from 0.
    pub(super) fn at(&self, rank: usize) -> u64 {
        let mut below = 0_u64;
        for (at, count) in self.counts.iter().enumerate() {
            below += count;
            if below > rank as u64 {
                return middle(self.first + at);
            }
        }
        0
    }
}

/// Below 2^8 each value has a bucket of its own.
fn bucket(value: u64) -> usize {
    let above = (u64::BITS - value.leading_zeros()).saturating_sub(DETAIL + 1);
    ((above as usize) << DETAIL) + (value >> above) as usize
}

fn middle(bucket: usize) -> u64 {
    let above = (bucket >> DETAIL).saturating_sub(1) as u32;
    let low = ((bucket - ((above as usize) << DETAIL)) as u64) << above;
    low + ((1_u64 << above) - 1) / 2
}

#[cfg(test)]
mod tests {
    use super::{Counts, bucket, middle};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_middle_is_near_its_values(value: u64, shift in 0_u32..64) {
            let value = value >> shift;
            let near = middle(bucket(value));
            prop_assert_eq!(bucket(near), bucket(value));
            prop_assert!(near.abs_diff(value) as f64 <= value as f64 * 0.002, "{} for {}", near, value);
        }

        #[test]
        fn ranks_are_found_whatever_the_order(mut values in prop::collection::vec(any::<u64>(), 1..60), cut in 0_usize..60) {
            let (mut counts, mut other) = (Counts::default(), Counts::default());
            for (at, value) in values.iter().enumerate() {
                if at < cut { counts.push(*value) } else { other.push(*value) }
            }
            counts.merge(&other);
            values.sort_unstable();
            for (rank, value) in values.iter().enumerate() {
                prop_assert_eq!(counts.at(rank), middle(bucket(*value)));
            }
        }
    }
}
