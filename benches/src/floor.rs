//! What no span can be cheaper than.

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::subject::{Subject, time};

/// The loop alone. It is subtracted from everything else.
#[derive(Debug)]
pub struct Empty;

impl Subject for Empty {
    fn name(&self) -> &'static str {
        "empty loop"
    }

    fn round(&self, spans: u32) -> Duration {
        time(spans, |i| {
            black_box(i);
        })
    }
}

/// Two readings of the clock that the profiler itself reads: the processor's counter where the kernel trusts it.
#[derive(Debug)]
pub struct Reads(Option<quanta::Clock>);

impl Reads {
    /// Finds out which clock that is.
    #[must_use]
    pub fn new() -> Self {
        let source = fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
        Self(source.is_ok_and(|name| name.trim() == "tsc").then(quanta::Clock::new))
    }
}

impl Default for Reads {
    fn default() -> Self {
        Self::new()
    }
}

impl Subject for Reads {
    fn name(&self) -> &'static str {
        "two raw clock reads"
    }

    fn round(&self, spans: u32) -> Duration {
        match &self.0 {
            Some(clock) => time(spans, |i| {
                black_box((clock.raw(), black_box(i), clock.raw()));
            }),
            None => time(spans, |i| {
                black_box((Instant::now(), black_box(i), Instant::now()));
            }),
        }
    }
}
