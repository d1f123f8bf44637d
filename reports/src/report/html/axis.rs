//! Where an axis has its marks, and what they say.

/// A mark: its place on the axis, and its word.
pub(super) type Tick = (f64, String);

/// An axis ends here; what lies beyond was not measured but damaged.
const MOST: f64 = 1e30;

/// Round numbers from 0 (or below) to at least `max`, about four of them, with the end of the axis.
pub(super) fn numbers(min: f64, max: f64) -> (f64, f64, Vec<Tick>) {
    let (min, max) = (min.clamp(-MOST, MOST), max.clamp(-MOST, MOST));
    let span = if max > min { max - min } else { max.abs().max(1.0) };
    let step = round_step(span / 4.0);
    let from = (min / step).floor() * step;
    let count = ((max - from) / step).ceil().clamp(1.0, 12.0);
    let digits = (-step.log10().floor()).clamp(0.0, 6.0) as usize;
    let tick = |at: f64| {
        let value = from + at * step;
        (value, short(value, digits))
    };
    (from, from + count * step, (0..=count as u32).map(|at| tick(f64::from(at))).collect())
}

/// 1, 2 or 5 times a power of ten.
fn round_step(raw: f64) -> f64 {
    let power = 10_f64.powf(raw.log10().floor());
    match raw / power {
        x if x <= 1.0 => power,
        x if x <= 2.0 => 2.0 * power,
        x if x <= 5.0 => 5.0 * power,
        _ => 10.0 * power,
    }
}

/// Large numbers in thousands and millions.
fn short(value: f64, digits: usize) -> String {
    match value.abs() {
        x if x >= 1e9 => format!("{value:.1e}"),
        x if x >= 1e6 => trimmed(value / 1e6) + "M",
        x if x >= 1e4 => trimmed(value / 1e3) + "k",
        _ => format!("{value:.digits$}"),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Steps of time, seconds, that people count in.
const STEPS: [f64; 21] = [
    0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
    7200.0, 21600.0, 86400.0,
];

/// Marks of time in a stretch of seconds, about five.
pub(super) fn times(from: f64, to: f64) -> Vec<Tick> {
    let span = (to - from).max(1e-6);
    let last = 86_400.0 * (span / 6.0 / 86_400.0).ceil();
    let step = STEPS.into_iter().find(|step| span / step <= 6.0).unwrap_or(last);
    let first = (from / step).ceil();
    let count = ((to / step).floor() - first).clamp(0.0, 12.0) as u32;
    (0..=count).map(|at| (first + f64::from(at)) * step).map(|at| (at, time(at, step))).collect()
}

fn time(seconds: f64, step: f64) -> String {
    let whole = seconds.round() as i64;
    match step {
        s if s < 0.1 => format!("{seconds:.3} s"),
        s if s < 1.0 => format!("{seconds:.1} s"),
        _ if seconds < 60.0 => format!("{whole} s"),
        s if s < 60.0 => format!("{}:{:02}", whole / 60, whole % 60),
        s if s < 3600.0 && seconds < 3600.0 => format!("{} min", whole / 60),
        s if s < 3600.0 => format!("{}:{:02} h", whole / 3600, whole % 3600 / 60),
        s if s < 86_400.0 => format!("{} h", whole / 3600),
        _ => format!("{} d", whole / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::{numbers, times};

    fn words(ticks: &[(f64, String)]) -> Vec<&str> {
        ticks.iter().map(|(_, word)| word.as_str()).collect()
    }

    #[test]
    fn marks_are_round() {
        assert_eq!(words(&numbers(0.0, 37.9).2), ["0", "10", "20", "30", "40"]);
        assert_eq!(words(&numbers(0.0, 0.35).2), ["0.0", "0.1", "0.2", "0.3", "0.4"]);
        assert_eq!(words(&numbers(0.0, 24_152.0).2), ["0", "10k", "20k", "30k"]);
        assert_eq!(words(&numbers(0.0, 0.0).2).first(), Some(&"0.0"));
        assert_eq!(words(&times(0.0, 57.4)), ["0 s", "10 s", "20 s", "30 s", "40 s", "50 s"]);
        assert_eq!(words(&times(0.0, 400.0)), ["0 s", "2 min", "4 min", "6 min"]);
        assert!(times(0.0, 1e9).len() <= 13);
    }

    #[test]
    fn odd_numbers_give_an_axis() {
        for max in [1e-12, 1e300, f64::MAX / 2.0] {
            let (from, to, ticks) = numbers(0.0, max);
            assert!(from <= 0.0 && to.is_finite() && ticks.len() <= 13, "{max}");
        }
    }
}
