//! The median of many ratios, in little room.

use super::EXACT;
use crate::quick::QuickMap;
use crate::stats::median;

/// Ratios, of which the median is asked for: exact up to [`EXACT`] of them, then off by at most 0.4 %.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ratios {
    all: Vec<f32>,
    /// Counts by sign, exponent and eight bits below, once there are many.
    counts: QuickMap<u32, u64>,
    count: u64,
}

impl Ratios {
    pub(crate) fn push(&mut self, ratio: f32) {
        self.count += 1;
        if !self.counts.is_empty() {
            *self.counts.entry(ordered(ratio) >> LOST).or_default() += 1;
            return;
        }
        self.all.push(ratio);
        if self.all.len() > EXACT {
            for ratio in std::mem::take(&mut self.all) {
                *self.counts.entry(ordered(ratio) >> LOST).or_default() += 1;
            }
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    /// The median; `None` if there are none.
    pub(crate) fn median(&self) -> Option<f64> {
        if self.counts.is_empty() {
            return median(&self.all.iter().copied().map(f64::from).collect::<Vec<_>>());
        }
        let mut counts: Vec<(&u32, &u64)> = self.counts.iter().collect();
        counts.sort_unstable();
        let mut below = 0;
        let middle = counts.into_iter().find(|(_, count)| {
            below += **count;
            below > self.count / 2
        });
        middle.map(|(key, _)| f64::from(value(key << LOST | 1 << (LOST - 1))))
    }
}

/// Bits that a bucket does not tell apart.
const LOST: u32 = 15;
const SIGN: u32 = 1 << 31;

/// Bits that are in the order of the numbers, and back.
fn ordered(ratio: f32) -> u32 {
    let bits = ratio.to_bits();
    if bits & SIGN == 0 { bits | SIGN } else { !bits }
}

fn value(ordered: u32) -> f32 {
    f32::from_bits(if ordered & SIGN == 0 { !ordered } else { ordered ^ SIGN })
}

#[cfg(test)]
mod tests {
    use super::{EXACT, Ratios, ordered, value};

    #[test]
    fn the_median_of_many_is_near() {
        for sign in [1.0, -1.0] {
            let mut ratios = Ratios::default();
            (0..=2 * EXACT).for_each(|at| ratios.push(sign * (at as f32 + 1.0) / 1000.0));
            assert_eq!(ratios.len(), 2 * EXACT as u64 + 1);
            let (found, exact) = (ratios.median().unwrap(), f64::from(sign) * (EXACT as f64 + 1.0) / 1000.0);
            assert!((found / exact - 1.0).abs() < 0.004, "{found} for {exact}");
        }
    }

    #[test]
    fn the_order_of_bits_is_that_of_the_numbers() {
        let numbers = [f32::NEG_INFINITY, -3.5, -1e-9, 0.0, 1e-9, 2.0, f32::INFINITY];
        assert!(numbers.windows(2).all(|pair| ordered(pair[0]) < ordered(pair[1])));
        assert!(numbers.iter().all(|number| value(ordered(*number)).total_cmp(number).is_eq()));
    }
}
