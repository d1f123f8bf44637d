//! The middle of a few observations with an interval that asks little of them: that of Wilcoxon's signed-rank test. One slow
//! iteration, which would make an interval by Student's t useless, hardly widens it.

use dflash_timeline::signed_rank::{outside, pair_means};

/// Observations up to which the chance of each sum of ranks is counted; above, sums are as good as normal.
const COUNTED: usize = 64;
/// Chance that the interval misses on either side.
const TAIL: f64 = 0.025;
/// That many standard deviations leave out as much.
const NORMAL: f64 = 1.959_964;

/// Lower end, middle (Hodges and Lehmann's) and upper end of an interval that covers the middle of a symmetric
/// distribution in 95 of 100 cases. `None` of fewer than six observations.
pub(super) fn interval(observations: &[f64]) -> Option<(f64, f64, f64)> {
    let rank = rank(observations.len())?;
    let means = pair_means(observations);
    let high = *means.get(means.len().checked_sub(rank + 1)?)?;
    let middle = f64::midpoint(means[(means.len() - 1) / 2], means[means.len() / 2]);
    Some((*means.get(rank)?, middle, high))
}

/// How many of the means of two lie outside of the interval on either side: the largest sum of ranks of which chance alone
/// gives that or less with a probability of at most [`TAIL`].
fn rank(count: usize) -> Option<usize> {
    if count > COUNTED {
        let n = count as f64;
        let (mean, variance) = (n * (n + 1.0) / 4.0, n * (n + 1.0) * (2.0 * n + 1.0) / 24.0);
        return Some((mean - NORMAL * variance.sqrt() - 0.5).floor() as usize);
    }
    outside(count, TAIL)
}

#[cfg(test)]
mod tests {
    use super::{interval, rank};
    use crate::diff::noise::Noise;

    #[test]
    fn ranks_of_the_tables() {
        // Critical values of the two-sided test at 5 %.
        assert_eq!([5, 6, 8, 10, 20, 30].map(rank), [None, Some(0), Some(3), Some(8), Some(52), Some(137)]);
        let (counted, normal) = (rank(64), rank(65));
        assert!(counted < normal && normal.zip(counted).is_some_and(|(n, c)| n - c < 40), "{counted:?} {normal:?}");
    }

    #[test]
    fn one_slow_iteration_hardly_widens_it() {
        let mut values: Vec<f64> = (0..20).map(|i| f64::from(i) * 0.001).collect();
        let (low, middle, high) = interval(&values).unwrap();
        assert!(low < middle && middle < high && (middle - 0.0095).abs() < 1e-9);
        values[19] = 50.0;
        let slow = interval(&values).unwrap();
        assert!((slow.0 - low).abs() < 0.002 && (slow.2 - high).abs() < 0.002, "{slow:?}");
    }

    #[test]
    fn covers_the_middle_as_often_as_it_says() {
        let mut noise = Noise::new(7);
        for count in [10, 30, 70] {
            let covered = |_: &usize| {
                let values: Vec<f64> = (0..count).map(|_| 3.0 + noise.normal()).collect();
                interval(&values).is_some_and(|(low, _, high)| (low..=high).contains(&3.0))
            };
            let inside = (0..200_usize).filter(covered).count();
            assert!((180..=199).contains(&inside), "{inside} of 200 with {count} observations");
        }
    }
}
