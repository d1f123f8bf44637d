//! Median and 95th percentile of one stage in one run, and how well they are known.
//!
//! Neighbouring iterations resemble each other, so the values are resampled in blocks, each several autocorrelation
//! times long. Few blocks say little about their own spread, which the degrees of freedom carry on.

use super::bootstrap::{Blocks, RESAMPLES};
use super::{autocorrelation, bootstrap};
use crate::stats::percentile;

/// Most blocks that are made; more would cost time and add nothing.
const MOST_BLOCKS: usize = 200;
/// Length of a block in autocorrelation times.
const TIMES_PER_BLOCK: f64 = 4.0;
/// Fewest blocks that say something about spread.
const FEWEST_BLOCKS: usize = 4;
/// Fewest independent values (the effective n) that allow a verdict.
pub(super) const FEWEST_EFFECTIVE: f64 = 10.0;
/// The same of the 95th percentile: three lie beyond it.
pub(super) const FEWEST_FOR_P95: f64 = 60.0;

/// What is known of one stage in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    /// Number of values.
    pub n: usize,
    /// Number of independent values that would be as good; NaN if that cannot be known.
    pub effective: f64,
    pub median: Point,
    /// `None` if a report does not hold it.
    pub p95: Option<Point>,
}

/// One percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Point {
    /// Nanoseconds.
    pub ns: f64,
    /// `None` if there are too few values.
    pub error: Option<Spread>,
}

/// How well a percentile is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    /// Standard error of its logarithm.
    pub log: f64,
    /// Degrees of freedom of that error.
    pub df: f64,
}

impl Estimate {
    /// Estimates from values in the order of time. `None` if there are none.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        let sorted = bootstrap::sorted(values);
        let at = |percent| percentile(&sorted, percent).map(|(value, _)| value);
        let (low, median, p95) = (at(5)?, at(50)?, at(95)?);
        let time = autocorrelation::time(values, [low, p95]);
        let effective = values.len() as f64 / time;
        let length = values.len().div_ceil(MOST_BLOCKS).max((TIMES_PER_BLOCK * time).ceil() as usize);
        let enough = effective >= FEWEST_EFFECTIVE && values.len() / length >= FEWEST_BLOCKS;
        let errors = enough.then(|| spread(Blocks::cut(sorted, length), time));
        Some(Self {
            n: values.len(),
            effective,
            median: Point { ns: median, error: errors.map(|[median, _]| median) },
            p95: Some(Point { ns: p95, error: errors.filter(|_| effective >= FEWEST_FOR_P95).map(|[_, p95]| p95) }),
        })
    }

    /// Of a report that holds nothing but the percentiles.
    pub(super) fn of_summary(median: f64, p95: Option<f64>, n: usize) -> Self {
        let point = |ns| Point { ns, error: None };
        Self { n, effective: f64::NAN, median: point(median), p95: p95.map(point) }
    }
}

fn spread(blocks: Blocks, time: f64) -> [Spread; 2] {
    // Drawing few resamples is one more source of uncertainty about the error.
    let df = 1.0 / (1.0 / (blocks.count as f64 - 1.0) + 1.0 / (RESAMPLES as f64 - 1.0));
    blocks.log_errors([50, 95], time).map(|log| Spread { log, df })
}

/// Sample variance; 0 of a single value.
pub(super) fn variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::Estimate;
    use crate::diff::noise::Noise;
    use crate::diff::student;

    /// How often the 95 % intervals of median and 95th percentile cover the true ones.
    fn coverage(rho: f64, n: usize) -> [f64; 2] {
        const RUNS: usize = 150;
        let mut noise = Noise::new(2);
        let mut covered = [0.0; 2];
        for _ in 0..RUNS {
            let values: Vec<f64> = noise.autoregressive(n, rho).iter().map(|v| 100.0 + 5.0 * v).collect();
            let points = Estimate::of(&values).and_then(|e| Some([e.median, e.p95?])).unwrap_or_else(|| panic!("n"));
            for (i, (point, truth)) in points.iter().zip([100.0_f64, 108.224]).enumerate() {
                let error = point.error.unwrap_or_else(|| panic!("enough values"));
                let reach = student::upper_quantile(0.025, error.df) * error.log;
                covered[i] += f64::from((point.ns.ln() - truth.ln()).abs() < reach) / RUNS as f64;
            }
        }
        covered
    }

    #[test]
    fn the_interval_covers_the_truth_about_as_often_as_it_says() {
        for rho in [0.0, 0.6] {
            let [median, p95] = coverage(rho, 700);
            assert!((0.89..=0.99).contains(&median), "median, rho {rho}: {median}");
            assert!((0.87..=0.99).contains(&p95), "p95, rho {rho}: {p95}");
        }
    }

    #[test]
    fn few_values_have_no_error() {
        assert_eq!(Estimate::of(&[]), None);
        let three = Estimate::of(&[1.0, 2.0, 3.0]).map(|e| (e.median.ns, e.median.error));
        assert_eq!(three, Some((2.0, None)));
        let constant = Estimate::of(&[4.0; 100]).and_then(|e| e.median.error);
        assert_eq!(constant.map(|s| s.log), Some(0.0));
        let forty: Vec<f64> = (0..40).map(|i| f64::from(i * 7919 % 101)).collect();
        let forty = Estimate::of(&forty).map(|e| (e.median.error.is_some(), e.p95.is_some_and(|p| p.error.is_some())));
        assert_eq!(forty, Some((true, false)), "two of forty lie beyond the 95th percentile");
    }
}
