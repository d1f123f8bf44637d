//! When a change counts.

use super::Correction;
use crate::error::{Error, Result};
use serde::Serialize;

/// When a change counts, and how sure one must be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Options {
    /// A change below this share is none. Default: 0.03.
    pub threshold: f64,
    /// Neither is one of fewer nanoseconds. Default: 50 µs.
    pub floor_ns: f64,
    /// With one run a side, a change must be larger by this share to be believed: what two runs of the same program may
    /// differ by. Several runs a side show it themselves. Default: 0.05.
    pub run_noise: f64,
    /// Probability of a false alarm in the whole comparison. Default: 0.05.
    pub alpha: f64,
    /// How p-values are corrected for the number of tests. Default: Holm.
    pub correction: Correction,
}

impl Default for Options {
    fn default() -> Self {
        Self { threshold: 0.03, floor_ns: 50_000.0, run_noise: 0.05, alpha: 0.05, correction: Correction::Holm }
    }
}

/// Reads a share: `3%`, `3 %` or `0.03`.
///
/// # Errors
/// [`Error::Number`] if it is none, is negative, not finite, or 1 and more without a percent sign (3 could mean 3 %).
pub fn share(what: &'static str, text: &str) -> Result<f64> {
    let error = |expected| Error::Number { what, expected, value: text.to_owned() };
    let (digits, unit) = match text.trim().strip_suffix('%') {
        Some(digits) => (digits.trim_end(), 0.01),
        None => (text.trim(), 1.0),
    };
    let number: f64 = digits.parse().map_err(|_| error("a share such as 3% or 0.03"))?;
    if !number.is_finite() || number < 0.0 {
        return Err(error("finite and not negative, such as 3% or 0.03"));
    }
    if unit == 1.0 && number >= 1.0 {
        return Err(error("below 1, or written with a percent sign"));
    }
    Ok(number * unit)
}

/// Reads a duration: `50us`, `50 µs`, `0.2ms`, `1s`, `100ns`. Nanoseconds.
///
/// # Errors
/// [`Error::Number`] if it is none, has no unit, is negative or not finite.
pub fn duration(what: &'static str, text: &str) -> Result<f64> {
    let error = |expected| Error::Number { what, expected, value: text.to_owned() };
    const UNITS: [(&str, f64); 5] = [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9)];
    let found = UNITS.iter().find_map(|(unit, ns)| Some((text.trim().strip_suffix(unit)?.trim_end(), ns)));
    let (digits, ns) = found.ok_or_else(|| error("a duration with its unit, such as 50us"))?;
    let number: f64 = digits.parse().map_err(|_| error("a duration with its unit, such as 50us"))?;
    if !number.is_finite() || number < 0.0 {
        return Err(error("finite and not negative, such as 50us"));
    }
    Ok(number * ns)
}

/// Reads a probability between 0 and 1, both excluded.
///
/// # Errors
/// [`Error::Number`] if it is none.
pub fn probability(what: &'static str, text: &str) -> Result<f64> {
    let number = text.trim().parse().ok().filter(|p: &f64| *p > 0.0 && *p < 1.0);
    number.ok_or_else(|| Error::Number { what, expected: "between 0 and 1, such as 0.05", value: text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::{duration, probability, share};

    #[test]
    fn durations_and_probabilities() {
        for (text, ns) in [("50us", 5e4), ("50 µs", 5e4), ("0.2ms", 2e5), ("1s", 1e9), ("100ns", 100.0), ("0s", 0.0)] {
            let read = duration("--floor", text).unwrap_or(f64::NAN);
            assert!((read - ns).abs() < 1e-6, "{text}: {read}");
        }
        for text in ["50", "nan us", "-1us", "infs", "", "us", "1 min"] {
            assert!(duration("--floor", text).is_err(), "{text}");
        }
        assert_eq!(probability("--alpha", "0.01").ok(), Some(0.01));
        for text in ["0", "1", "nan", "5%", "-0.1", ""] {
            assert!(probability("--alpha", text).is_err(), "{text}");
        }
    }

    #[test]
    fn shares_are_read_and_nonsense_is_refused() {
        for (text, value) in [("3%", 0.03), ("3 %", 0.03), ("0.03", 0.03), ("0", 0.0), ("150%", 1.5)] {
            let read = share("--threshold", text).unwrap_or(f64::NAN);
            assert!((read - value).abs() < 1e-12, "{text}: {read}");
        }
        for text in ["nan", "NaN%", "-1%", "-0.1", "inf", "", "%", "3", "0,03", "3 percent"] {
            assert!(share("--threshold", text).is_err(), "{text}");
        }
        let error = share("--threshold", "nan").map_err(|e| e.to_string());
        assert_eq!(error, Err("--threshold must be finite and not negative, such as 3% or 0.03, not `nan`".into()));
    }
}
