//! Records that the writer's thread makes itself; it counts them as every lane counts its own.

use dflash_timeline::record::{Mark, Severity};

use super::super::account::Source;
use super::Output;

impl Output {
    /// A reading of the profiler's own.
    pub(crate) fn own_sample(&mut self, name: &str, unit: &str, time_ns: i64, value: f64) {
        self.own += 1;
        self.sample(Source::NOBODY, name, unit, time_ns, value);
    }

    /// Something that the profiler has to say.
    pub(crate) fn warn(&mut self, text: String) {
        self.own += 1;
        self.mark(&Mark { time_ns: dflash_sys::monotonic_ns(), severity: Severity::Warning, text });
    }
}
