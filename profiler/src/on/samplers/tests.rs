//! What the samplers' tests share.

use dflash_timeline::record::Severity;

use super::sink::Sink;

/// Keeps everything.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    pub samples: Vec<(String, &'static str, f64)>,
    pub marks: Vec<(Severity, String)>,
}

impl Readings {
    /// The last value of a counter.
    pub(crate) fn last(&self, name: &str) -> Option<f64> {
        self.samples.iter().rev().find(|(n, ..)| n == name).map(|(.., value)| *value)
    }
}

impl Sink for Readings {
    fn sample(&mut self, name: &str, unit: &'static str, value: f64) {
        self.samples.push((name.to_owned(), unit, value));
    }

    fn mark(&mut self, severity: Severity, text: String) {
        self.marks.push((severity, text));
    }
}
