//! Resampling in blocks: how uncertain a percentile is when neighbouring values depend on each other.
//!
//! The values are cut into blocks of neighbours, longer than their memory. A resample draws as many blocks with
//! replacement; the percentile's spread over many resamples is its standard error. No resample is ever laid out: each
//! block has a weight (how often it was drawn), and a walk along the sorted values adds weights until the percentile's
//! rank is reached. The walk starts at the edge of a band around the percentile, since the values below are counted.

use super::decide::CLOCK_STEP;
use super::noise::Noise;

/// Resamples that are drawn. They add 1 / (2 × 200) = 0.25 % to the error's own variance.
pub(super) const RESAMPLES: usize = 200;

/// The values of one series, cut into blocks.
pub(super) struct Blocks {
    /// How many.
    pub count: usize,
    /// Values with their block, in order of size.
    sorted: Vec<(f64, u32)>,
}

/// Values in order of size, each with its place in the order of time.
pub(super) fn sorted(values: &[f64]) -> Vec<(f64, u32)> {
    let mut sorted: Vec<(f64, u32)> = values.iter().zip(0..).map(|(value, place)| (*value, place)).collect();
    sorted.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
    sorted
}

/// Where the walk to one percentile begins.
struct Band<'a> {
    /// Values of each block below the band.
    below: Vec<u32>,
    values: &'a [(f64, u32)],
}

impl Blocks {
    /// Cuts values into blocks of about `length` neighbours. They are given in order of size, each with its place in the
    /// order of time.
    pub(super) fn cut(mut sorted: Vec<(f64, u32)>, length: usize) -> Self {
        let n = sorted.len();
        let count = (n / length.max(1)).max(1);
        sorted.iter_mut().for_each(|(_, place)| *place = (*place as usize * count / n) as u32);
        Self { count, sorted }
    }

    /// Standard errors of the logarithms of the percentiles.
    pub(super) fn log_errors<const N: usize>(&self, percents: [usize; N], time: f64) -> [f64; N] {
        let bands = percents.map(|percent| self.band(percent, time));
        let mut moments = [(0.0, 0.0); N];
        let mut noise = Noise::new(self.sorted.len() as u64);
        let mut weights = vec![0_u32; self.count];
        // Logarithms about the first resample's, so that squares lose no digits.
        let mut levels = [None; N];
        for _ in 0..RESAMPLES {
            weights.fill(0);
            (0..self.count).for_each(|_| weights[noise.below(self.count)] += 1);
            let total: u64 = self.weigh_all(&weights);
            for (i, (band, percent)) in bands.iter().zip(percents).enumerate() {
                let log = self.percentile(band, &weights, percent_rank(total, percent)).max(CLOCK_STEP).ln();
                let log = log - *levels[i].get_or_insert(log);
                moments[i] = (moments[i].0 + log, moments[i].1 + log * log);
            }
        }
        let draws = RESAMPLES as f64;
        moments.map(|(sum, squares)| {
            let variance: f64 = (squares - sum * sum / draws) / (draws - 1.0);
            variance.max(0.0).sqrt()
        })
    }

    /// Number of values in a resample: blocks may differ in length by one.
    fn weigh_all(&self, weights: &[u32]) -> u64 {
        let n = self.sorted.len();
        let begin = |block: usize| (block * n).div_ceil(self.count);
        weights.iter().enumerate().map(|(i, w)| u64::from(*w) * (begin(i + 1) - begin(i)) as u64).sum()
    }

    /// Where a percentile lies in all but a few resamples: eight standard errors of its rank to each side.
    fn band(&self, percent: usize, time: f64) -> Band<'_> {
        let n = self.sorted.len();
        let share = percent as f64 / 100.0;
        let reach = 8.0 * (share * (1.0 - share) * n as f64 * time).sqrt() + 8.0;
        let start = (share * n as f64 - reach).max(0.0) as usize;
        let mut below = vec![0; self.count];
        self.sorted[..start].iter().for_each(|(_, block)| below[*block as usize] += 1);
        Band { below, values: &self.sorted[start..] }
    }

    /// The value of a rank (from 1) in a resample.
    fn percentile(&self, band: &Band<'_>, weights: &[u32], rank: u64) -> f64 {
        let below: u64 = band.below.iter().zip(weights).map(|(count, w)| u64::from(*count) * u64::from(*w)).sum();
        let (mut seen, values) = if below < rank { (below, band.values) } else { (0, self.sorted.as_slice()) };
        for (value, block) in values {
            seen += u64::from(weights[*block as usize]);
            if seen >= rank {
                return *value;
            }
        }
        values.last().map_or(f64::NAN, |(value, _)| *value)
    }
}

/// Nearest rank, as in [`percentile`](crate::stats::percentile).
fn percent_rank(total: u64, percent: usize) -> u64 {
    (total * percent as u64).div_ceil(100).max(1)
}

#[cfg(test)]
mod tests {
    use super::{Blocks, percent_rank, sorted};
    use crate::diff::noise::Noise;
    use crate::stats::percentile;
    use proptest::prelude::*;

    fn mean_error(rho: f64, length: usize, n: usize) -> [f64; 2] {
        let mut noise = Noise::new(3);
        let mut sums = [0.0; 2];
        for _ in 0..40 {
            let values: Vec<f64> = noise.autoregressive(n, rho).iter().map(|v| 100.0 + 5.0 * v).collect();
            let errors = Blocks::cut(sorted(&values), length).log_errors([50, 95], length as f64);
            (0..2).for_each(|i| sums[i] += errors[i] / 40.0);
        }
        sums
    }

    #[test]
    fn the_error_of_a_normal_sample_is_the_closed_form() {
        // sqrt(p (1 - p) / n) / density, over the percentile itself: 5 % noise about 100.
        let [median, p95] = mean_error(0.0, 1, 1000);
        let expected = [0.05 * 1.2533 / 1000_f64.sqrt(), 0.05 * 2.1132 / 1000_f64.sqrt() / 1.0822];
        assert!((median / expected[0] - 1.0).abs() < 0.08, "{median} {}", expected[0]);
        assert!((p95 / expected[1] - 1.0).abs() < 0.12, "{p95} {}", expected[1]);
    }

    #[test]
    fn dependence_widens_the_error_as_theory_says() {
        // The median's: 1 + 2 Σ (2/π) asin(rho^k) = 2.94 at rho 0.6.
        let [median, _] = mean_error(0.6, 20, 2000);
        let expected = 0.05 * 1.2533 * (2.94_f64 / 2000.0).sqrt();
        assert!((0.85..1.1).contains(&(median / expected)), "{}", median / expected);
    }

    #[test]
    fn of_constants_and_of_zeros_there_is_no_error() {
        assert_eq!(Blocks::cut(sorted(&[4.0; 100]), 5).log_errors([50, 95], 1.0), [0.0, 0.0]);
        assert_eq!(Blocks::cut(sorted(&[0.0; 100]), 5).log_errors([50], 1.0), [0.0]);
    }

    proptest! {
        /// A resample laid out and sorted has the same percentile as the walk.
        #[test]
        fn the_walk_finds_what_a_laid_out_resample_has(
            values in proptest::collection::vec(0_u16..50, 1..200), length in 1_usize..20, seed: u64, percent in 1_usize..100,
        ) {
            let values: Vec<f64> = values.into_iter().map(f64::from).collect();
            let blocks = Blocks::cut(sorted(&values), length);
            let mut noise = Noise::new(seed);
            let mut weights = vec![0; blocks.count];
            (0..blocks.count).for_each(|_| weights[noise.below(blocks.count)] += 1);
            let block_of = |i: usize| i * blocks.count / values.len();
            let times = |i: usize| weights[block_of(i)] as usize;
            let mut drawn: Vec<f64> =
                values.iter().enumerate().flat_map(|(i, v)| std::iter::repeat_n(*v, times(i))).collect();
            drawn.sort_by(f64::total_cmp);
            prop_assert_eq!(blocks.weigh_all(&weights), drawn.len() as u64);
            let found = blocks.percentile(&blocks.band(percent, 1.0), &weights, percent_rank(drawn.len() as u64, percent));
            prop_assert_eq!(Some(found), percentile(&drawn, percent));
        }
    }
}
