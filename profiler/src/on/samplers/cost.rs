//! What a sampler costs, as counters of its own.

use std::time::Duration;

use super::sink::Sink;

/// Adds up. The counters are `profiler.<sampler>.cpu` (CPU time of its thread so far), `profiler.<sampler>.calls` (how
/// often it asked so far) and `sampler.<sampler>.worst` (the longest that one call took so far, on the clock).
#[derive(Debug)]
pub(crate) struct Cost {
    cpu: String,
    calls: String,
    worst: String,
    asked: u64,
    longest: Duration,
}

impl Cost {
    pub(crate) fn new(sampler: &str) -> Self {
        Self {
            cpu: format!("profiler.{sampler}.cpu"),
            calls: format!("profiler.{sampler}.calls"),
            worst: format!("sampler.{sampler}.worst"),
            asked: 0,
            longest: Duration::ZERO,
        }
    }

    /// A call was made.
    pub(crate) fn call(&mut self, took: Duration) {
        self.asked += 1;
        self.longest = self.longest.max(took);
    }

    /// Records the state. The first time, before any work, so that growth is all of the cost.
    pub(crate) fn record(&self, cpu_ns: u64, sink: &mut dyn Sink) {
        sink.sample(&self.cpu, "ns", cpu_ns as f64);
        sink.sample(&self.calls, "calls", self.asked as f64);
        sink.sample(&self.worst, "us", self.longest.as_secs_f64() * 1e6);
    }
}
