//! From observations to a ratio: its interval, its p-value, and beyond what it counts.
//!
//! One run a side: the spread within the runs, from resampled blocks (Welch). Several runs: runs are resampled first,
//! then blocks. What that converges to is known without drawing anything: the variance of the mean of resampled runs is
//! that between the runs plus that within them, each over the number of runs. Here the first is corrected for few runs and
//! pooled over both sides, and already holds the second, since a run's percentile wobbles by what its blocks say.

use super::Options;
use super::estimate::{FEWEST_EFFECTIVE, FEWEST_FOR_P95, Point, variance};
use super::student;

/// Relative standard error below which the clock's own step decides.
const FINEST: f64 = 1e-9;

/// The clock's step, nanoseconds.
pub(super) const CLOCK_STEP: f64 = 1.0;

/// A measured ratio on a logarithmic scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ratio {
    pub log: f64,
    pub error: f64,
    pub df: f64,
}

/// Beyond what a change counts, on a logarithmic scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bounds {
    /// A change must lie beyond these to be called, and within to be none.
    pub plain: (f64, f64),
    /// The same, widened by what runs of one program differ by; one run a side must clear these to be believed.
    pub widened: (f64, f64),
}

/// Compares a percentile of each run; or says why it cannot be compared.
pub(super) fn ratio(a: &[Point], b: &[Point]) -> Result<Ratio, String> {
    if a.is_empty() || b.is_empty() {
        return Err("no values".into());
    }
    // Below the clock's step of a nanosecond there is no ratio; the floor is far above it.
    let at_least_a_step = |points: &[Point]| {
        points.iter().map(|point| Point { ns: point.ns.max(CLOCK_STEP), ..*point }).collect::<Vec<_>>()
    };
    let (a, b) = (at_least_a_step(a), at_least_a_step(b));
    match (a.as_slice(), b.as_slice()) {
        ([a], [b]) => within_runs(a, b).ok_or_else(too_few),
        (a, b) => Ok(between_runs(a, b)),
    }
}

fn too_few() -> String {
    format!("effective n below {FEWEST_EFFECTIVE:.0} (p95: {FEWEST_FOR_P95:.0}), or below 4 blocks")
}

/// The geometric mean of the runs' percentiles; the plain one where one of them is 0.
pub(super) fn middle(runs: &[Point]) -> f64 {
    if let [one] = runs {
        return one.ns;
    }
    let count = runs.len().max(1) as f64;
    if runs.iter().all(|point| point.ns > 0.0) && !runs.is_empty() {
        return (runs.iter().map(|point| point.ns.ln()).sum::<f64>() / count).exp();
    }
    runs.iter().map(|point| point.ns).sum::<f64>() / count
}

/// One run against one (Welch).
fn within_runs(a: &Point, b: &Point) -> Option<Ratio> {
    let (of_a, of_b) = (a.error?, b.error?);
    let (va, vb) = (of_a.log.powi(2), of_b.log.powi(2));
    let least = of_a.df.min(of_b.df);
    let df = if va + vb > 0.0 { (va + vb).powi(2) / (va * va / of_a.df + vb * vb / of_b.df) } else { least };
    let error = (va + vb).sqrt();
    error.is_finite().then(|| Ratio { log: (b.ns / a.ns).ln(), error: error.max(FINEST), df })
}

/// Several runs: the spread is pooled over both sides, and never below that within a run.
fn between_runs(a: &[Point], b: &[Point]) -> Ratio {
    let logs = |runs: &[Point]| runs.iter().map(|point| point.ns.ln()).collect::<Vec<f64>>();
    let (logs_a, logs_b) = (logs(a), logs(b));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let df = (a.len() + b.len() - 2) as f64;
    let squares = |values: &[f64]| variance(values) * (values.len() as f64 - 1.0);
    let pooled = (squares(&logs_a) + squares(&logs_b)) / df;
    let inner: Vec<f64> = a.iter().chain(b).filter_map(|point| Some(point.error?.log.powi(2))).collect();
    let within = if inner.is_empty() { 0.0 } else { mean(&inner) };
    let spread = pooled.max(within) * (1.0 / a.len() as f64 + 1.0 / b.len() as f64);
    Ratio { log: mean(&logs_b) - mean(&logs_a), error: spread.sqrt().max(FINEST), df }
}

impl Bounds {
    /// The relative threshold or the absolute floor, whichever is wider. `noisy`: one run a side.
    pub(super) fn of(base_ns: f64, noisy: bool, options: &Options) -> Self {
        let floor = options.floor_ns / base_ns.max(CLOCK_STEP);
        let bounds = |threshold: f64| {
            let down = (1.0 / (1.0 + threshold)).min(1.0 - floor).max(f64::MIN_POSITIVE);
            (down.ln(), threshold.max(floor).ln_1p())
        };
        let noise = if noisy { options.run_noise } else { 0.0 };
        Self { plain: bounds(options.threshold), widened: bounds((1.0 + options.threshold) * (1.0 + noise) - 1.0) }
    }
}

impl Ratio {
    /// The interval that covers the truth with probability 1 - `alpha`, on a logarithmic scale.
    pub(super) fn interval(&self, alpha: f64) -> (f64, f64) {
        if self.error <= FINEST {
            return (self.log, self.log);
        }
        let reach = student::upper_quantile(alpha / 2.0, self.df) * self.error;
        (self.log - reach, self.log + reach)
    }

    /// Two-sided p-value of "the change is not beyond the bounds".
    pub(super) fn p(&self, (down, up): (f64, f64)) -> f64 {
        if self.error <= FINEST {
            return f64::from(self.log >= down && self.log <= up);
        }
        let slower = student::upper_tail((self.log - up) / self.error, self.df);
        let faster = student::upper_tail((down - self.log) / self.error, self.df);
        (2.0 * slower.min(faster)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bounds, Point, Ratio, between_runs, ratio, within_runs};
    use crate::diff::Options;
    use crate::diff::estimate::{Spread, variance};
    use crate::diff::noise::Noise;
    use proptest::prelude::*;

    fn point(ns: f64, log: f64) -> Point {
        Point { ns, error: Some(Spread { log, df: 20.0 }) }
    }

    /// What resampling runs first, then blocks gives when it is done by drawing.
    fn drawn(runs: &[Point], noise: &mut Noise) -> f64 {
        let mut draw = || {
            let one = |noise: &mut Noise| {
                let run = runs[noise.below(runs.len())];
                run.ns.ln() + run.error.map_or(0.0, |s| s.log) * noise.normal()
            };
            (0..runs.len()).map(|_| one(noise)).sum::<f64>() / runs.len() as f64
        };
        variance(&(0..20_000).map(|_| draw()).collect::<Vec<_>>())
    }

    #[test]
    fn drawing_runs_then_blocks_gives_the_closed_form() {
        let (mut noise, within) = (Noise::new(5), 0.01);
        let a = [point(100.0, within), point(103.0, within), point(98.0, within), point(105.0, within)];
        let b = [point(110.0, within), point(104.0, within), point(107.0, within), point(101.0, within)];
        let logs = |runs: &[Point]| variance(&runs.iter().map(|p| p.ns.ln()).collect::<Vec<_>>());
        // Drawing 4 of 4 runs shows 3/4 of the spread between them, and that within the runs once more.
        let expected = |runs: &[Point]| (0.75 * logs(runs) + within * within) / 4.0;
        for runs in [&a, &b] {
            let drawn = drawn(runs, &mut noise);
            assert!((drawn / expected(runs) - 1.0).abs() < 0.05, "{drawn} {}", expected(runs));
        }
        let pooled = f64::midpoint(logs(&a), logs(&b)) * 0.5;
        assert!((between_runs(&a, &b).error.powi(2) / pooled - 1.0).abs() < 1e-9);
    }

    #[test]
    fn two_runs_of_equal_error_are_welch_by_hand() {
        let found = within_runs(&point(100.0, 0.03), &point(110.0, 0.04)).unwrap_or_else(|| panic!("both are known"));
        assert!((found.log - 1.1_f64.ln()).abs() < 1e-12 && (found.error - 0.05).abs() < 1e-12);
        // (9 + 16)² / (9²/20 + 16²/20)
        assert!((found.df - 625.0 * 20.0 / 337.0).abs() < 1e-9, "{}", found.df);
        assert!(ratio(&[], &[point(1.0, 0.1)]).is_err());
        let from_nothing = ratio(&[point(0.0, 0.0)], &[point(20.0, 0.0)]).map(|ratio| ratio.log.exp());
        assert!(from_nothing.is_ok_and(|ratio| (ratio - 20.0).abs() < 1e-9), "0 counts as a step of the clock");
    }

    #[test]
    fn the_floor_is_wider_than_the_threshold_for_short_stages() {
        let options = Options::default();
        let long = Bounds::of(100e6, true, &options);
        assert!((long.plain.1 - 1.03_f64.ln()).abs() < 1e-12);
        assert!((long.widened.1 - (1.03_f64 * 1.05).ln()).abs() < 1e-12);
        let short = Bounds::of(100e3, false, &options);
        assert!((short.plain.1 - 1.5_f64.ln()).abs() < 1e-12 && short.plain == short.widened);
        assert!(Bounds::of(10e3, false, &options).plain.0 < -700.0, "below the floor nothing improves");
    }

    proptest! {
        /// The p-value is at most alpha just where the interval lies beyond the bound.
        #[test]
        fn interval_and_p_value_agree(log in -0.3_f64..0.3, error in 0.001_f64..0.1, df in 2.0_f64..200.0) {
            let (ratio, bounds) = (Ratio { log, error, df }, (-0.03, 0.03));
            let (low, high) = ratio.interval(0.05);
            let beyond = low > bounds.1 || high < bounds.0;
            let near = (low - bounds.1).abs() < 1e-6 || (high - bounds.0).abs() < 1e-6;
            prop_assert!(near || beyond == (ratio.p(bounds) < 0.05));
        }

        /// Exchanging the sides turns the ratio around.
        #[test]
        fn sides_are_treated_alike(logs in proptest::collection::vec((4.0_f64..5.0, 0.001_f64..0.1), 2..8), cut in 1_usize..7) {
            let points: Vec<Point> = logs.iter().map(|(log, error)| point(log.exp(), *error)).collect();
            let (a, b) = points.split_at(cut.min(points.len() - 1));
            let (there, back) = (ratio(a, b), ratio(b, a));
            let (Ok(there), Ok(back)) = (there, back) else { return Err(TestCaseError::fail("no ratio")) };
            prop_assert!((there.log + back.log).abs() < 1e-9 && (there.error - back.error).abs() < 1e-12);
        }
    }
}
