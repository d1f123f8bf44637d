//! Wilcoxon's signed-rank test, which both sides need: the profiler to watch what it costs, reports to compute that anew.

/// The means of all pairs of observations, each with itself among them, ascending.
#[must_use]
pub fn pair_means(observations: &[f64]) -> Vec<f64> {
    let pairs = observations.iter().enumerate();
    let mut means: Vec<f64> =
        pairs.flat_map(|(i, a)| observations[i..].iter().map(move |b| f64::midpoint(*a, *b))).collect();
    means.sort_unstable_by(f64::total_cmp);
    means
}

/// How many of the means of pairs lie outside of an interval on either side, which so misses the middle of a symmetric
/// distribution with a probability of at most `tail` there: the largest sum of ranks of which chance alone gives that or
/// less so seldom. `None`: too few observations (6 for 2.5 %, 18 for 5 in a million). Takes the cube of `count`.
#[must_use]
pub fn outside(count: usize, tail: f64) -> Option<usize> {
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
