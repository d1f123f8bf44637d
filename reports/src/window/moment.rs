//! Times as a user types them: `90s`, `1h30m`, `30s..2m`, `2026-11-30T12:00:00Z..`, `@1796035383`.

use crate::error::{Error, Result};
use std::str::FromStr;

/// A length of time, nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Length(pub u64);

/// A moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Nanoseconds since the recording began.
    SinceStart(u64),
    /// Nanoseconds since 1970.
    Date(i64),
}

/// A stretch of time, `A..B`; either end may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// From this on; `None`: from the begin.
    pub from: Option<Moment>,
    /// Up to this, exclusively; `None`: to the end.
    pub to: Option<Moment>,
}

const LENGTH: &str = "a number with its unit, such as 500ms, 60s, 2m or 1h30m";
const RANGE: &str = "A..B, each a time since the run's start (30s..2m), a date (2026-11-30T12:00:00Z) or seconds since 1970 (@1796035383); \
     one of them may be left out, and A must come before B";

fn bad(what: &'static str, expected: &'static str, value: &str) -> Error {
    Error::Number { what, expected, value: value.to_owned() }
}

impl FromStr for Length {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        length(text).filter(|ns| *ns > 0).map(Self).ok_or_else(|| bad("a length of time", LENGTH, text))
    }
}

impl FromStr for TimeRange {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        range(text).ok_or_else(|| bad("a window", RANGE, text))
    }
}

fn range(text: &str) -> Option<TimeRange> {
    let (from, to) = text.split_once("..")?;
    let end = |text: &str| if text.is_empty() { Some(None) } else { moment(text).map(Some) };
    let (from, to) = (end(from)?, end(to)?);
    let backwards = match (from, to) {
        (None, None) => true,
        (Some(Moment::SinceStart(a)), Some(Moment::SinceStart(b))) => a >= b,
        (Some(Moment::Date(a)), Some(Moment::Date(b))) => a >= b,
        _ => false,
    };
    (!backwards).then_some(TimeRange { from, to })
}

fn moment(text: &str) -> Option<Moment> {
    if let Some(seconds) = text.strip_prefix('@') {
        let ns = decimal(seconds.strip_prefix('-').unwrap_or(seconds), 1_000_000_000)?;
        let ns = i64::try_from(ns).ok()?;
        return Some(Moment::Date(if seconds.starts_with('-') { -ns } else { ns }));
    }
    length(text).map(Moment::SinceStart).or_else(|| date(text).map(Moment::Date))
}

/// `1h30m`, `2.5s`, `0s`: numbers with units, the greater unit first. Nanoseconds.
fn length(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 7] = [
        ("d", 86_400_000_000_000),
        ("h", 3_600_000_000_000),
        ("min", 60_000_000_000),
        ("ms", 1_000_000),
        ("m", 60_000_000_000),
        ("us", 1_000),
        ("s", 1_000_000_000),
    ];
    let (mut rest, mut sum, mut least) = (text, 0_u64, u64::MAX);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let (unit, ns) = UNITS.iter().find(|(unit, _)| tail.starts_with(unit))?;
        if *ns >= least {
            return None;
        }
        least = *ns;
        sum = sum.checked_add(decimal(number, *ns)?)?;
        rest = &tail[unit.len()..];
    }
    (least != u64::MAX).then_some(sum)
}

/// A decimal number of a unit, in nanoseconds, without a detour over floating point.
fn decimal(text: &str, unit_ns: u64) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) {
        return None;
    }
    let part = &part[..part.len().min(9)];
    let fraction = u128::from(unit_ns) * part.parse::<u128>().ok()? / 10_u128.pow(part.len() as u32);
    let whole = u128::from(unit_ns).checked_mul(whole.parse::<u128>().ok()?)?;
    u64::try_from(whole + fraction).ok()
}

/// `2026-11-30T12:00:00`, with a fraction of a second, `Z` or `+01:00`; without a zone it is UTC. Nanoseconds since 1970.
fn date(text: &str) -> Option<i64> {
    let (day, time) = text.split_once(['T', ' '])?;
    let zone = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at(zone);
    let [year, month, day] = numbers(day, '-')?;
    let (time, fraction) = time.split_once('.').map_or((time, 0), |(time, part)| (time, part.len()));
    let fraction_ns = if fraction > 0 {
        let at = time.len() + 1;
        decimal(&format!("0.{}", &text.split_once(['T', ' '])?.1[at..at + fraction]), 1_000_000_000)?
    } else {
        0
    };
    let time = if time.matches(':').count() == 1 { format!("{time}:00") } else { time.to_owned() };
    let [hour, minute, second] = numbers(&time, ':')?;
    let valid = (1970..=2200).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !valid || hour > 24 || minute > 59 || second > 60 {
        return None;
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset(zone)?;
    seconds.checked_mul(1_000_000_000)?.checked_add_unsigned(fraction_ns)
}

fn numbers(text: &str, between: char) -> Option<[i64; 3]> {
    let number = |part: &str| if part.bytes().all(|b| b.is_ascii_digit()) { part.parse::<i64>().ok() } else { None };
    let parts: Vec<i64> = text.split(between).map(number).collect::<Option<_>>()?;
    parts.try_into().ok()
}

/// Seconds east of Greenwich.
fn offset(zone: &str) -> Option<i64> {
    if zone.is_empty() || zone == "Z" {
        return Some(0);
    }
    let sign = if zone.starts_with('-') { -1 } else { 1 };
    let (hours, minutes) = zone[1..].split_once(':')?;
    let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
    (hours <= 14 && minutes <= 59).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Days since 1970-01-01 (Howard Hinnant's `days_from_civil`).
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let year_of_era = year.rem_euclid(400);
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::{Length, Moment, TimeRange, date, moment};

    #[test]
    fn lengths_have_units() {
        let length = |text: &str| text.parse::<Length>().ok().map(|Length(ns)| ns);
        assert_eq!(length("60s"), Some(60_000_000_000));
        assert_eq!(length("1h30m"), Some(5_400_000_000_000));
        assert_eq!(length("2min5s"), Some(125_000_000_000));
        assert_eq!(length("2.5ms"), Some(2_500_000));
        assert_eq!(length("0.000001s"), Some(1000));
        for bad in
            ["", "60", "s", "-5s", "1e3s", "nan", "infs", "5s5s", "5s1h", "1..5s", "0s", "٣s", "99999999999999999d"]
        {
            assert_eq!(length(bad), None, "{bad}");
        }
    }

    #[test]
    fn dates_are_what_date_says() {
        let second = 1_000_000_000;
        assert_eq!(date("1970-01-01T00:00:00Z"), Some(0));
        assert_eq!(date("2000-02-29T12:34:56Z"), Some(951_827_696 * second));
        assert_eq!(date("2026-11-29T23:59:59.5Z"), Some(1_795_996_799 * second + 500_000_000));
        assert_eq!(date("2026-11-30T01:00+01:00"), date("2026-11-30 00:00:00"));
        assert_eq!(date("2026-11-29T19:00-05:00"), date("2026-11-30T00:00Z"));
        for bad in ["2026-13-01T00:00Z", "2026-11-30", "12:00", "2026-11-30T25:00Z", "2026-11-30T12:00+99:00", "T"] {
            assert_eq!(date(bad), None, "{bad}");
        }
        assert_eq!(moment("@1.5"), Some(Moment::Date(1_500_000_000)));
    }

    #[test]
    fn ranges_go_forwards() {
        let parse = |text: &str| text.parse::<TimeRange>();
        let minute = Some(Moment::SinceStart(60_000_000_000));
        assert_eq!(parse("1m..").unwrap(), TimeRange { from: minute, to: None });
        assert_eq!(parse("..60s").unwrap(), TimeRange { from: None, to: minute });
        for bad in ["..", "1m", "2m..1m", "1m..1m", "a..b", "@2..@1", "1m...2m"] {
            let error = parse(bad).unwrap_err().to_string();
            assert!(error.contains("30s..2m") && error.contains(bad), "{error}");
        }
    }
}
