//! `[sim]`: how long simulated stages last.

use super::section::section;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long something lasts: always the same time, or drawn anew each time. Written `"20 ms"`, `"uniform 10 ms 30 ms"`,
/// `"normal 20 ms 2 ms"` (mean, standard deviation; never below 0) or `"exponential 20 ms"` (mean).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Lasting {
    /// How it is drawn.
    pub law: Law,
    /// Its first time, seconds: mean, or least.
    pub first: f64,
    /// Its second time, seconds: deviation, or most; 0 where there is none.
    pub second: f64,
}

/// How a time is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Not at all.
    Constant,
    /// Evenly between two times.
    Uniform,
    /// By a normal distribution, cut off at 0.
    Normal,
    /// By an exponential distribution.
    Exponential,
}

const UNITS: [(&str, f64); 3] = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];

impl Lasting {
    /// The time that three even random numbers from 0 up to 1 give.
    #[must_use]
    pub fn draw(&self, random: impl FnMut() -> f64) -> Duration {
        let mut random = random;
        let seconds = match self.law {
            Law::Constant => self.first,
            Law::Uniform => self.first + (self.second - self.first) * random(),
            Law::Exponential => -self.first * (1.0 - random()).ln(),
            Law::Normal => {
                // Box and Muller.
                let radius = (-2.0 * (1.0 - random()).ln()).sqrt();
                self.first + self.second * radius * (std::f64::consts::TAU * random()).cos()
            }
        };
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    /// The mean time, seconds; of a normal distribution, what it would be if it were not cut off.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self.law {
            Law::Uniform => f64::midpoint(self.first, self.second),
            Law::Constant | Law::Normal | Law::Exponential => self.first,
        }
    }
}

impl TryFrom<String> for Lasting {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        parse(&text).ok_or_else(|| {
            format!(
                "`{text}` is no time; write \"20 ms\", \"uniform 10 ms 30 ms\", \"normal 20 ms 2 ms\" or \"exponential 20 \
                 ms\" (us, ms, s)"
            )
        })
    }
}

fn parse(text: &str) -> Option<Lasting> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let (law, times) = match words.split_first()? {
        (&"uniform", times) => (Law::Uniform, times),
        (&"normal", times) => (Law::Normal, times),
        (&"exponential", times) => (Law::Exponential, times),
        _ => (Law::Constant, &words[..]),
    };
    let times = times.chunks(2).map(time).collect::<Option<Vec<_>>>()?;
    match (law, &times[..]) {
        (Law::Constant | Law::Exponential, &[first]) => Some(Lasting { law, first, second: 0.0 }),
        (Law::Uniform, &[first, second]) if first <= second => Some(Lasting { law, first, second }),
        (Law::Normal, &[first, second]) => Some(Lasting { law, first, second }),
        _ => None,
    }
}

/// Seconds of a number and its unit.
fn time(words: &[&str]) -> Option<f64> {
    let [number, unit] = words else { return None };
    let unit = UNITS.iter().find(|(name, _)| name == unit)?.1;
    // An hour is more than any stage takes, and surely a slip.
    number.parse::<f64>().ok().map(|n| n * unit).filter(|seconds| (0.0..=3600.0).contains(seconds))
}

impl From<Lasting> for String {
    fn from(lasting: Lasting) -> Self {
        let ms = |seconds: f64| format!("{} ms", seconds * 1e3);
        let (first, second) = (ms(lasting.first), ms(lasting.second));
        match lasting.law {
            Law::Constant => first,
            Law::Uniform => format!("uniform {first} {second}"),
            Law::Normal => format!("normal {first} {second}"),
            Law::Exponential => format!("exponential {first}"),
        }
    }
}

section! {
    /// Simulated devices (`sim`, `sim:1`, …): stages last as long as told here and compute nothing.
    Sim {
        /// How long stages last, by their names: `"target.forward" = "20 ms"`, `"uniform 10 ms 30 ms"`, `"normal 20 ms 2
        /// ms"` (mean, standard deviation) or `"exponential 20 ms"`. A stage that is not named takes no time.
        stages: BTreeMap<String, Lasting> = BTreeMap::new(),
        /// How far the host may be ahead of a device's work when it leaves a stage; 0 = it waits for each.
        run_ahead: Lasting = Lasting { law: Law::Constant, first: 0.0, second: 0.0 },
        /// Made-up texts.
        samples: usize = 256,
        /// Shortest text, tokens.
        shortest: usize = 3072,
        /// Longest text, tokens.
        longest: usize = 3072,
        /// Bytes of one token's hidden states (Qwen3-8B, five taps, bfloat16: 40,960).
        token_bytes: u64 = 40_960,
        /// A worker that fails, to see what becomes of the others: `"drafter:1 panics at 7"`, `"target:0 fails at 3"`
        /// (its lane, its iteration); empty = none.
        fail: String = String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    fn lasting(text: &str) -> Result<Lasting, String> {
        Lasting::try_from(text.to_owned())
    }

    #[test]
    fn times_are_read_and_written() {
        let uniform = lasting("uniform 10 ms 0.03 s").unwrap();
        assert_eq!(uniform, Lasting { law: Law::Uniform, first: 0.01, second: 0.03 });
        assert_eq!(lasting(&String::from(uniform)), Ok(uniform));
        assert!((lasting("250 us").unwrap().mean() - 250e-6).abs() < 1e-12);
        for bad in ["", "20", "20ms", "-1 ms", "normal 20 ms", "uniform 3 ms 2 ms", "poisson 1 ms", "NaN ms", "2 h"] {
            assert!(lasting(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_drawn_has_the_mean_and_the_deviation() {
        for (text, deviation) in [
            ("20 ms", 0.0),
            ("uniform 10 ms 30 ms", 20.0 / 12f64.sqrt()),
            ("normal 20 ms 2 ms", 2.0),
            ("exponential 20 ms", 20.0),
        ] {
            let (law, mut rng) = (lasting(text).unwrap(), StdRng::seed_from_u64(3));
            let n = 40_000;
            let drawn: Vec<f64> = (0..n).map(|_| law.draw(|| rng.random()).as_secs_f64() * 1e3).collect();
            let mean = drawn.iter().sum::<f64>() / f64::from(n);
            let variance = drawn.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / f64::from(n);
            // Five standard errors of the mean; of the deviation, a tenth.
            assert!((mean - 20.0).abs() <= 5.0 * deviation / f64::from(n).sqrt() + 1e-6, "{text}: {mean}");
            assert!((variance.sqrt() - deviation).abs() <= 0.1 * deviation + 1e-6, "{text}: {}", variance.sqrt());
        }
    }
}
