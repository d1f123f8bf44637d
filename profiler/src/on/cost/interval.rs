//! An interval for the middle of a few observations that asks little of them: that of Wilcoxon's signed-rank test.

use dflash_timeline::signed_rank::{outside, pair_means};

/// The interval which misses the middle with a probability of at most `tail` on either side, whatever the distribution, as
/// long as it is symmetric. `None`: too few observations for that (6 for 2.5 %, 18 for 5 in a million).
pub(super) fn interval(observations: &[f64], tail: f64) -> Option<(f64, f64)> {
    let rank = outside(observations.len(), tail)?;
    let means = pair_means(observations);
    Some((*means.get(rank)?, *means.get(means.len().checked_sub(rank + 1)?)?))
}

#[cfg(test)]
mod tests {
    use super::{interval, outside as rank};

    #[test]
    fn ranks_of_the_tables() {
        // Critical values of the two-sided test at 5 %.
        let critical = [6, 7, 8, 10, 15, 20, 25].map(|n| rank(n, 0.025));
        assert_eq!(critical, [0, 2, 3, 8, 25, 52, 89].map(Some));
        assert_eq!((rank(5, 0.025), rank(17, 5e-6), rank(18, 5e-6)), (None, None, Some(0)));
    }

    #[test]
    fn covers_the_middle_as_often_as_it_says() {
        let mut seed = 1_u64;
        let mut uniform = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 11) as f64 / (1_u64 << 53) as f64
        };
        let (mut inside, rounds) = (0, 1_000);
        for _ in 0..rounds {
            // Heavy tails: now and then something takes 20 times as long.
            let mut noise = || (uniform() - 0.5) * if uniform() < 0.05 { 20.0 } else { 1.0 };
            let sample: Vec<f64> = (0..20).map(|_| 3.0 + noise()).collect();
            let (low, high) = interval(&sample, 0.025).unwrap();
            inside += u32::from((low..=high).contains(&3.0));
        }
        assert!((930..=975).contains(&inside), "{inside} of {rounds}");
    }
}
