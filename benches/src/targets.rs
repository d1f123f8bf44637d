//! What a span shall cost at most, and whether it did. A target is judged by the interval of the rounds' own verdicts, not
//! by two medians: each cycle compares what ran within the same few milliseconds.

use crate::stats::{Interval, interval};

/// One target: how much of it was used. Up to 1 it is reached.
#[derive(Clone, Debug)]
pub struct Target {
    /// What shall hold.
    pub says: String,
    /// Measured ÷ allowed.
    pub used: Interval,
}

impl Target {
    /// `allowed` and `measured` are nanoseconds, by cycle.
    #[must_use]
    pub fn new(says: &str, measured: &[f64], allowed: &[f64]) -> Self {
        let used: Vec<f64> = measured.iter().zip(allowed).map(|(measured, allowed)| measured / allowed).collect();
        Self { says: says.to_owned(), used: interval(&used) }
    }

    /// The verdict in words.
    #[must_use]
    pub fn verdict(&self) -> &'static str {
        match self.used {
            Interval { high, .. } if high <= 1.0 => "reached",
            Interval { low, .. } if low > 1.0 => "missed",
            // NaN, too: nothing was measured.
            _ => "open",
        }
    }
}

/// Of each cycle, the cheapest of several subjects.
#[must_use]
pub fn cheapest(subjects: &[&[f64]]) -> Vec<f64> {
    let cycles = subjects.iter().map(|rounds| rounds.len()).min().unwrap_or(0);
    (0..cycles).map(|cycle| subjects.iter().map(|rounds| rounds[cycle]).fold(f64::INFINITY, f64::min)).collect()
}

#[cfg(test)]
mod tests {
    use super::{Target, cheapest};

    #[test]
    fn reached_missed_and_open() {
        let verdict = |measured: f64| Target::new("", &[measured; 30], &[10.0; 30]).verdict();
        assert_eq!((verdict(9.0), verdict(11.0), verdict(f64::NAN)), ("reached", "missed", "open"));
        let between: Vec<f64> = (0..30).map(|i| if i % 2 == 0 { 9.0 } else { 11.0 }).collect();
        assert_eq!(Target::new("", &between, &[10.0; 30]).verdict(), "open");
    }

    #[test]
    fn the_cheapest_of_each_cycle() {
        assert_eq!(cheapest(&[&[3.0, 1.0], &[2.0, 5.0]]), [2.0, 1.0]);
    }
}
