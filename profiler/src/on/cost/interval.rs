//! An interval for the middle of a few observations that asks little of them: that of Wilcoxon's signed-rank test.

/// The interval which misses the middle with a probability of at most `tail` on either side, whatever the distribution, as
/// long as it is symmetric. `None`: too few observations for that (6 for 2.5 %, 18 for 5 in a million).
pub(super) fn interval(observations: &[f64], tail: f64) -> Option<(f64, f64)> {
    let rank = rank(observations.len(), tail)?;
    let mut means: Vec<f64> = observations
        .iter()
        .enumerate()
        .flat_map(|(i, a)| observations[i..].iter().map(move |b| f64::midpoint(*a, *b)))
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    Some((*means.get(rank)?, *means.get(means.len().checked_sub(rank + 1)?)?))
}

/// How many of the means of pairs lie outside on either side: the largest number for which the probability that the sum
/// of the ranks of the positive observations is that or less, under chance, is at most `tail`.
fn rank(count: usize, tail: f64) -> Option<usize> {
    let most = count * (count + 1) / 2;
    // Probability of each sum of ranks, where each rank counts or not by the toss of a coin.
    let mut chance = vec![0.0; most + 1];
    chance[0] = 1.0;
    for rank in 1..=count {
        for sum in (0..=most).rev() {
            let with = if sum >= rank { chance[sum - rank] } else { 0.0 };
            chance[sum] = f64::midpoint(chance[sum], with);
        }
    }
    let mut below = 0.0;
    let outside = chance.iter().take_while(|p| {
        below += **p;
        below <= tail
    });
    outside.count().checked_sub(1).filter(|rank| rank * 2 < most)
}

#[cfg(test)]
mod tests {
    use super::{interval, rank};

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
