//! When a change counts.

use crate::error::{Error, Result};
use serde::Serialize;

/// When a change counts, and how sure one must be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Options {
    /// A change below this share is none. Default: 0.03.
    pub threshold: f64,
    /// Neither is one of fewer nanoseconds. Default: 50 µs.
    pub floor_ns: f64,
    /// With one run a side, a change must be larger by this share: what two runs of the same program may differ by.
    /// Default: 0.05.
    pub run_noise: f64,
    /// Probability of a false alarm in the whole comparison (Holm). Default: 0.05.
    pub alpha: f64,
}

impl Default for Options {
    fn default() -> Self {
        Self { threshold: 0.03, floor_ns: 50_000.0, run_noise: 0.05, alpha: 0.05 }
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

#[cfg(test)]
mod tests {
    use super::share;

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
