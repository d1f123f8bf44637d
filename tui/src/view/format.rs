//! Numbers as the screen writes them: short, with their unit, and `N/A` where there is none.

use std::time::Duration;

/// What stands where nothing was measured. It is not 0.
pub const UNKNOWN: &str = "N/A";

/// `value` through `write`, or [`UNKNOWN`].
#[must_use]
pub fn known<T>(value: Option<T>, write: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| UNKNOWN.to_owned(), write)
}

/// A length of time in three digits: `812 ns`, `4.21 ms`, `1.20 s`, `3m07s`.
#[must_use]
pub fn nanoseconds(ns: f64) -> String {
    if !ns.is_finite() {
        return UNKNOWN.to_owned();
    }
    let (value, unit) = match ns.abs() {
        0.0..1e3 => return format!("{ns:.0} ns"),
        1e3..1e6 => (ns / 1e3, "µs"),
        1e6..1e9 => (ns / 1e6, "ms"),
        1e9..1e11 => (ns / 1e9, "s"),
        _ => return elapsed(Duration::from_secs_f64((ns / 1e9).clamp(0.0, 1e12))),
    };
    format!("{} {unit}", three_digits(value))
}

/// Milliseconds without the unit, for columns headed `ms`.
#[must_use]
pub fn milliseconds(ns: f64) -> String {
    match ns / 1e6 {
        ms if !ms.is_finite() => UNKNOWN.to_owned(),
        // What is there must not look like nothing.
        ms if ms > 0.0 && ms < 0.01 => format!("{ms:.4}"),
        ms if ms > 0.0 && ms < 0.1 => format!("{ms:.3}"),
        ms => three_digits(ms),
    }
}

/// `1.23`, `12.3`, `123`, `1,234`.
#[must_use]
pub fn three_digits(value: f64) -> String {
    match value.abs() {
        0.0..9.995 => format!("{value:.2}"),
        9.995..99.95 => format!("{value:.1}"),
        _ => whole(value),
    }
}

/// A value that usually is whole: `3`, `2.5`.
#[must_use]
pub fn short(value: f64) -> String {
    if (value - value.round()).abs() < 1e-9 { whole(value) } else { three_digits(value) }
}

/// A whole number with separators: `12,345`.
#[must_use]
pub fn whole(value: f64) -> String {
    if !value.is_finite() {
        return UNKNOWN.to_owned();
    }
    let digits = format!("{:.0}", value.abs());
    let mut written = String::new();
    if value < 0.0 && digits != "0" {
        written.push('-');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            written.push(',');
        }
        written.push(digit);
    }
    written
}

/// A share from 0 to 1 as `31 %`; what is there but rounds to nothing as `<1 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    match share * 100.0 {
        p if !p.is_finite() => UNKNOWN.to_owned(),
        p if p > 0.0 && p < 0.5 => "<1 %".to_owned(),
        p => format!("{p:.0} %"),
    }
}

/// Time since the start: `7s`, `4m07s`, `3h05m`, `2d04h`.
#[must_use]
pub fn elapsed(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h{:02}m", seconds / 3600, seconds / 60 % 60),
        _ => format!("{}d{:02}h", seconds / 86400, seconds / 3600 % 24),
    }
}

/// Bytes in three digits: `812 kB`, `1.20 GB`.
#[must_use]
pub fn bytes(bytes: u64) -> String {
    let bytes = bytes as f64;
    match bytes {
        ..1e6 => format!("{} kB", three_digits(bytes / 1e3)),
        1e6..1e9 => format!("{} MB", three_digits(bytes / 1e6)),
        _ => format!("{} GB", three_digits(bytes / 1e9)),
    }
}

/// An age: `0.2 s`, then as [`elapsed`].
#[must_use]
pub fn age(duration: Duration) -> String {
    if duration < Duration::from_secs(10) { format!("{:.1} s", duration.as_secs_f64()) } else { elapsed(duration) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_keep_three_digits() {
        let written: Vec<_> = [0.0, 812.0, 4_210.0, 42_100_000.0, 1.2e9, 187e9].map(nanoseconds).into();
        assert_eq!(written, ["0 ns", "812 ns", "4.21 µs", "42.1 ms", "1.20 s", "3m07s"]);
        assert_eq!(nanoseconds(f64::NAN), "N/A");
    }

    #[test]
    fn few_microseconds_are_not_nothing() {
        assert_eq!([0.0, 900.0, 42_000.0, 420_000.0].map(milliseconds), ["0.00", "0.0009", "0.042", "0.42"]);
    }

    #[test]
    fn shares_and_counts() {
        assert_eq!([0.0, 0.001, 0.314, 1.0].map(percent), ["0 %", "<1 %", "31 %", "100 %"]);
        assert_eq!([0.0, 999.0, 1000.0, -1_234_567.0].map(whole), ["0", "999", "1,000", "-1,234,567"]);
    }

    #[test]
    fn not_known_is_not_zero() {
        assert_eq!(known(None, percent), "N/A");
        assert_eq!(known(Some(0.0), percent), "0 %");
    }

    #[test]
    fn sizes() {
        assert_eq!([12_000, 1_500_000, 64 << 30].map(bytes), ["12.0 kB", "1.50 MB", "68.7 GB"]);
    }

    #[test]
    fn ages() {
        assert_eq!(age(Duration::from_millis(240)), "0.2 s");
        assert_eq!(age(Duration::from_secs(187)), "3m07s");
        assert_eq!(elapsed(Duration::from_secs(100_000)), "1d03h");
    }
}
