//! From observations to verdicts: the ratio of medians, its interval, its p-value, Holm's correction.

use super::estimate::{Estimate, FEWEST_EFFECTIVE, variance};
use super::side::Observed;
use super::{Options, student};

/// Reports (each one observation) that a side needs.
const FEWEST_REPORTS: usize = 4;
/// Relative standard error below which the clock's own step decides.
const FINEST: f64 = 1e-9;

/// What two sides say about one stage.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Test {
    pub median: (f64, f64),
    pub n: (usize, usize),
    pub effective: (Option<f64>, Option<f64>),
    /// Ratio B ÷ A on a logarithmic scale; its error; degrees of freedom. Or why there is none.
    pub ratio: Result<Ratio, String>,
    /// One run on each side: the run-to-run spread cannot be seen.
    pub within_run: bool,
}

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
    /// A change within these is none.
    pub same: (f64, f64),
    /// A change must lie beyond these to be called.
    pub called: (f64, f64),
}

/// Compares the observations of one stage.
pub(super) fn test(a: &[&Observed], b: &[&Observed]) -> Test {
    let (a, b) = (estimates(a), estimates(b));
    let ratio = if a.is_empty() || b.is_empty() {
        Err("no values".into())
    } else if a.iter().chain(&b).any(|e| e.median <= 0.0) {
        Err("a median is 0, so there is no ratio".into())
    } else if a.iter().chain(&b).any(|e| e.effective.is_nan()) && a.len().min(b.len()) < FEWEST_REPORTS {
        Err(format!("a stages.csv is one observation: give at least {FEWEST_REPORTS} a side, or iterations.csv"))
    } else if let ([a], [b]) = (a.as_slice(), b.as_slice()) {
        within_runs(a, b)
    } else {
        Ok(between_runs(&a, &b))
    };
    Test {
        median: (middle(&a), middle(&b)),
        n: (count(&a), count(&b)),
        effective: (effective(&a), effective(&b)),
        ratio,
        within_run: a.len() == 1 && b.len() == 1,
    }
}

fn estimates(observed: &[&Observed]) -> Vec<Estimate> {
    let estimate = |observed: &&Observed| match observed {
        Observed::Series(values) => Estimate::of(values),
        Observed::Summary { median, n } => Some(Estimate::of_summary(*median, *n)),
    };
    observed.iter().filter_map(estimate).collect()
}

/// The geometric mean of the runs' medians; the plain one where one of them is 0.
fn middle(runs: &[Estimate]) -> f64 {
    let count = runs.len().max(1) as f64;
    if runs.iter().all(|e| e.median > 0.0) && !runs.is_empty() {
        return (runs.iter().map(|e| e.median.ln()).sum::<f64>() / count).exp();
    }
    runs.iter().map(|e| e.median).sum::<f64>() / count
}

fn count(runs: &[Estimate]) -> usize {
    runs.iter().map(|e| e.n).sum()
}

fn effective(runs: &[Estimate]) -> Option<f64> {
    let sum = runs.iter().map(|e| e.effective).sum::<f64>();
    sum.is_finite().then_some(sum)
}

/// One run against one: batches tell the spread within them (Welch).
fn within_runs(a: &Estimate, b: &Estimate) -> Result<Ratio, String> {
    let (Some((error_a, df_a)), Some((error_b, df_b))) = (a.error, b.error) else {
        let least = a.effective.min(b.effective);
        return Err(format!("effective n {least:.0}, needed {FEWEST_EFFECTIVE:.0} in at least 4 batches"));
    };
    let (va, vb) = ((error_a / a.median).powi(2), (error_b / b.median).powi(2));
    let df = if va + vb > 0.0 { (va + vb).powi(2) / (va * va / df_a + vb * vb / df_b) } else { df_a.min(df_b) };
    Ok(Ratio { log: (b.median / a.median).ln(), error: (va + vb).sqrt().max(FINEST), df })
}

/// Several runs: each is one observation. The spread is pooled, and never below that within a run.
fn between_runs(a: &[Estimate], b: &[Estimate]) -> Ratio {
    let logs = |runs: &[Estimate]| runs.iter().map(|e| e.median.ln()).collect::<Vec<f64>>();
    let (logs_a, logs_b) = (logs(a), logs(b));
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let df = (a.len() + b.len() - 2) as f64;
    let squares = |values: &[f64]| variance(values) * (values.len() as f64 - 1.0);
    let pooled = (squares(&logs_a) + squares(&logs_b)) / df;
    let errors = a.iter().chain(b).filter_map(|e| Some((e.error?.0 / e.median).powi(2)));
    let inner: Vec<f64> = errors.collect();
    let within = if inner.is_empty() { 0.0 } else { mean(&inner) };
    let spread = pooled.max(within) * (1.0 / a.len() as f64 + 1.0 / b.len() as f64);
    Ratio { log: mean(&logs_b) - mean(&logs_a), error: spread.sqrt().max(FINEST), df }
}

impl Bounds {
    /// The relative threshold or the absolute floor, whichever is wider; one run a side has the run noise on top.
    pub(super) fn of(test: &Test, options: &Options) -> Self {
        let floor = options.floor_ns / test.median.0;
        let bounds = |threshold: f64| {
            let down = (1.0 / (1.0 + threshold)).min(1.0 - floor).max(f64::MIN_POSITIVE);
            (down.ln(), threshold.max(floor).ln_1p())
        };
        let noise = if test.within_run { options.run_noise } else { 0.0 };
        Self { same: bounds(options.threshold), called: bounds((1.0 + options.threshold) * (1.0 + noise) - 1.0) }
    }
}

impl Ratio {
    /// The interval that covers the truth with probability 1 - `alpha`, on a logarithmic scale.
    pub(super) fn interval(&self, alpha: f64) -> (f64, f64) {
        let reach = student::upper_quantile(alpha / 2.0, self.df) * self.error;
        (self.log - reach, self.log + reach)
    }

    /// Two-sided p-value of "the change is not beyond the bounds".
    pub(super) fn p(&self, (down, up): (f64, f64)) -> f64 {
        let slower = student::upper_tail((self.log - up) / self.error, self.df);
        let faster = student::upper_tail((down - self.log) / self.error, self.df);
        (2.0 * slower.min(faster)).min(1.0)
    }
}

/// Holm's correction: p-values that may be compared with alpha, whatever their number.
pub(super) fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&i, &j| p[i].total_cmp(&p[j]));
    let mut adjusted = vec![1.0; p.len()];
    let mut least: f64 = 0.0;
    for (rank, &i) in order.iter().enumerate() {
        least = least.max((p[i] * (p.len() - rank) as f64).min(1.0));
        adjusted[i] = least;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::holm;

    #[test]
    fn holm_by_hand() {
        let adjusted = holm(&[0.01, 0.04, 0.03]);
        let expected = [0.03, 0.06, 0.06];
        assert!(adjusted.iter().zip(expected).all(|(a, e)| (a - e).abs() < 1e-12), "{adjusted:?}");
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }
}
