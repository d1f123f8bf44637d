//! CPU samples in short: how many stacks there are, and how well they were taken.

use crate::counters::Readings;
use dflash_timeline::Timeline;
use serde::Serialize;

/// What is known of the stacks that were sampled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct CpuSamples {
    /// Stacks in the timeline.
    pub stacks: u64,
    /// Of those, on threads that no lane claims.
    pub without_lane: u64,
    /// Samples taken, as the sampler counts them (counter `cpu.samples` or `profiler.sampling.samples`, latest).
    pub taken: Option<f64>,
    /// Samples lost (`….lost`, latest).
    pub lost: Option<f64>,
    /// Rate that was achieved, samples a second (`….rate`, latest).
    pub rate_hz: Option<f64>,
}

impl CpuSamples {
    /// `None` if nothing was sampled.
    pub(crate) fn of(timeline: &Timeline, readings: &Readings, (stacks, without_lane): (u64, u64)) -> Option<Self> {
        let mut found = Self { stacks, without_lane, ..Self::default() };
        for (_, what, reading) in readings.wanted(timeline, |counter| what(&counter.name)) {
            let latest = Some(reading.last.value);
            match what {
                "samples" => found.taken = latest,
                "lost" => found.lost = latest,
                "rate" => found.rate_hz = latest,
                _ => {}
            }
        }
        (found != Self::default()).then_some(found)
    }
}

/// What a counter of the sampler says.
fn what(name: &str) -> Option<&str> {
    name.strip_prefix("cpu.").or_else(|| name.strip_prefix("profiler.sampling."))
}
