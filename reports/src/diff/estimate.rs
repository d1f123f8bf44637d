//! A median and how well it is known, from values that depend on those before them.
//!
//! Neighbouring iterations resemble each other, so the values are cut into at most 20 batches, each several
//! autocorrelation times long; the spread of the batches' medians says how uncertain the median of all is.

use crate::stats::{median, percentile};

/// Most batches that are made.
const MOST_BATCHES: usize = 20;
/// Length of a batch in autocorrelation times.
const TIMES_PER_BATCH: f64 = 4.0;
/// Fewest batches that say something about spread.
const FEWEST_BATCHES: usize = 4;
/// Fewest independent values (the effective n) that allow a verdict.
pub(super) const FEWEST_EFFECTIVE: f64 = 10.0;
/// Longest autocorrelation that is looked for.
const LONGEST_LAG: usize = 1000;

/// What is known of one stage in one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Estimate {
    /// Median, nanoseconds.
    pub median: f64,
    /// Number of values.
    pub n: usize,
    /// Number of independent values that would be as good.
    pub effective: f64,
    /// Standard error of the median, with its degrees of freedom; `None` if there are too few values.
    pub error: Option<(f64, f64)>,
}

impl Estimate {
    /// Estimates from values in the order of time. `None` if there are none.
    pub(super) fn of(values: &[f64]) -> Option<Self> {
        let median = median(values)?;
        let time = autocorrelation_time(values);
        let effective = values.len() as f64 / time;
        let length = values.len().div_ceil(MOST_BATCHES).max((TIMES_PER_BATCH * time).ceil() as usize);
        let error = if effective < FEWEST_EFFECTIVE { None } else { batch_error(values, length) };
        Some(Self { median, n: values.len(), effective, error })
    }

    /// Of a report that holds nothing but the median.
    pub(super) fn of_summary(median: f64, n: usize) -> Self {
        Self { median, n, effective: f64::NAN, error: None }
    }
}

/// Standard error from the spread of batch medians. What does not fill a batch is left out at the front, where a run
/// is least steady.
fn batch_error(values: &[f64], length: usize) -> Option<(f64, f64)> {
    let medians: Vec<f64> = values.rchunks_exact(length).filter_map(median).collect();
    if medians.len() < FEWEST_BATCHES {
        return None;
    }
    let count = medians.len() as f64;
    Some(((variance(&medians) / count).sqrt(), count - 1.0))
}

/// Sample variance; 0 of a single value.
pub(super) fn variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0).max(1.0)
}

/// Integrated autocorrelation time, at least 1, by Geyer's initial monotone sequence, looking no
/// further than six times its length (Sokal), behind which there is but noise. Values are clipped to the 5th and
/// 95th percentile first: one slow iteration would otherwise hide how the rest hang together.
fn autocorrelation_time(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (Some(low), Some(high)) = (percentile(&sorted, 5), percentile(&sorted, 95)) else { return 1.0 };
    let clipped: Vec<f64> = values.iter().map(|v| v.clamp(low, high)).collect();
    let mean = clipped.iter().sum::<f64>() / clipped.len() as f64;
    let centred: Vec<f64> = clipped.iter().map(|v| v - mean).collect();
    let covariance = |lag: usize| centred.iter().zip(&centred[lag..]).map(|(a, b)| a * b).sum::<f64>();
    let whole = covariance(0);
    if whole <= 0.0 {
        return 1.0;
    }
    let (mut time, mut least): (f64, f64) = (-1.0, f64::INFINITY);
    for lag in (0..LONGEST_LAG.min(centred.len() / 4)).step_by(2) {
        let pair = (covariance(lag) + covariance(lag + 1)) / whole;
        least = pair.min(least);
        if pair <= 0.0 || lag as f64 > 6.0 * time.max(1.0) {
            break;
        }
        time += 2.0 * least;
    }
    time.max(1.0)
}

#[cfg(test)]
mod tests {
    use super::{Estimate, autocorrelation_time};
    use crate::diff::noise::Noise;

    #[test]
    fn correlated_values_count_for_less() {
        let mut noise = Noise::new(1);
        let independent: Vec<f64> = (0..2000).map(|_| noise.normal()).collect();
        assert!(autocorrelation_time(&independent) < 1.6);
        let times = (0..30).map(|_| autocorrelation_time(&noise.autoregressive(2000, 0.8)));
        let mean = times.sum::<f64>() / 30.0;
        assert!((7.5..10.5).contains(&mean), "expected about 9, got {mean}");
    }

    #[test]
    fn the_error_covers_the_truth_about_as_often_as_it_says() {
        let mut noise = Noise::new(2);
        let runs = (0..200).filter_map(|_| Estimate::of(&noise.autoregressive(500, 0.6)));
        let z: Vec<bool> = runs.filter_map(|e| e.error.map(|(se, _)| e.median.abs() < 2.2 * se)).collect();
        let covered = z.iter().filter(|c| **c).count() as f64 / z.len() as f64;
        assert!(covered > 0.88, "{covered} of {}", z.len());
    }

    #[test]
    fn few_values_have_no_error() {
        assert_eq!(Estimate::of(&[]), None);
        assert_eq!(Estimate::of(&[1.0, 2.0, 3.0]).map(|e| (e.median, e.error)), Some((2.0, None)));
        assert_eq!(Estimate::of(&[4.0; 100]).and_then(|e| e.error), Some((0.0, 19.0)));
    }
}
