//! What a row of a table says about many rounds.

/// Middle value, and the values that a tenth of the rounds lie below and above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// A tenth of the values lies below.
    pub p10: f64,
    /// A tenth of the values lies above.
    pub p90: f64,
}

/// A median and what it may truly be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Median.
    pub median: f64,
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Median and spread of the values; all NaN without any.
#[must_use]
pub fn spread(values: &[f64]) -> Spread {
    let sorted = sorted(values);
    let at =
        |part: f64| sorted.get(((sorted.len().max(1) - 1) as f64 * part).round() as usize).copied().unwrap_or(f64::NAN);
    Spread { median: at(0.5), p10: at(0.1), p90: at(0.9) }
}

/// The median with its 95 % interval, from the order of the values alone: nothing is assumed about how they are spread,
/// only that the rounds do not depend on each other. With few values the interval is all of them.
#[must_use]
pub fn interval(values: &[f64]) -> Interval {
    let sorted = sorted(values);
    let count = sorted.len() as f64;
    // How many values lie below the true median is binomial: half of them, give or take 1.96 standard deviations.
    let reach = 0.98 * count.sqrt();
    let low = (count / 2.0 - reach).floor().max(0.0) as usize;
    let high = ((count / 2.0 + reach).ceil() as usize).min(sorted.len().max(1) - 1);
    let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
    Interval { median: spread(values).median, low: at(low), high: at(high) }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::{interval, spread};

    #[test]
    fn of_a_hundred_and_one_values() {
        let values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let all = spread(&values);
        assert_eq!((all.p10, all.median, all.p90), (10.0, 50.0, 90.0));
        let median = interval(&values);
        assert_eq!((median.low, median.median, median.high), (40.0, 50.0, 61.0));
    }

    #[test]
    fn of_few_and_of_none() {
        assert_eq!((interval(&[2.0, 1.0]).low, interval(&[2.0, 1.0]).high), (1.0, 2.0));
        assert!(spread(&[]).median.is_nan() && interval(&[]).low.is_nan());
    }
}
