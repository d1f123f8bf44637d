//! Counters in summary: how full the queues were, and what the profiler itself cost.

use crate::counters::{growth, seconds, series};
use crate::walk::Window;
use dflash_timeline::Timeline;
use dflash_timeline::record::Sample;
use serde::Serialize;

/// One queue's depth over the window.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct QueueRow {
    /// `batches` of the counter `queue.batches.depth`.
    pub queue: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// Readings.
    pub samples: u64,
    /// Mean depth, each reading weighted by the time until the next.
    pub mean: f64,
    /// The deepest reading.
    pub max: f64,
    /// The last reading.
    pub last: f64,
}

/// A counter that only grows, such as CPU time or bytes written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CounterRow {
    /// Its name.
    pub counter: String,
    /// Its unit.
    pub unit: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// How much it grew from the first reading to the last. A start from 0 (a resumed run) is no step back.
    pub growth: f64,
    /// Growth by second; `None` if all readings are of one moment.
    pub per_s: Option<f64>,
}

/// Depths of all queues, in the order of their counters. Readings that are no finite number are left out.
#[must_use]
pub fn queues(timeline: &Timeline, window: &Window) -> Vec<QueueRow> {
    let rows = series(timeline, window, |counter| queue_of(&counter.name));
    let rows = rows.into_iter().map(|(counter, queue, samples)| QueueRow {
        queue: queue.to_owned(),
        rank: counter.rank,
        samples: samples.len() as u64,
        mean: weighted_mean(&samples),
        max: samples.iter().map(|s| s.value).fold(f64::NEG_INFINITY, f64::max),
        last: samples.last().map_or(0.0, |s| s.value),
    });
    rows.collect()
}

/// The counters that the profiler keeps about its own work (`profiler.*`), without those that do not only grow: the cost
/// that it measures (`profiler.cost.*`), and how well it samples (`profiler.sampling.*`).
#[must_use]
pub fn profiler_counters(timeline: &Timeline, window: &Window) -> Vec<CounterRow> {
    let other = ["profiler.cost.", "profiler.sampling."];
    let grows = |name: &str| name.starts_with("profiler.") && !other.iter().any(|prefix| name.starts_with(prefix));
    let rows = series(timeline, window, |counter| grows(&counter.name).then_some(()));
    let rows = rows.into_iter().map(|(counter, (), samples)| CounterRow {
        counter: counter.name.clone(),
        unit: counter.unit.clone(),
        rank: counter.rank,
        growth: growth(&samples),
        per_s: seconds(&samples).map(|seconds| growth(&samples) / seconds),
    });
    rows.collect()
}

fn queue_of(name: &str) -> Option<&str> {
    name.strip_prefix("queue.")?.strip_suffix(".depth")
}

/// A depth holds until the next reading. Readings of one moment only are averaged plainly.
fn weighted_mean(samples: &[Sample]) -> f64 {
    let mut sum = 0.0;
    let mut time = 0.0;
    for pair in samples.windows(2) {
        let held = (pair[1].time_ns - pair[0].time_ns).max(0) as f64;
        sum += pair[0].value * held;
        time += held;
    }
    if time > 0.0 { sum / time } else { samples.iter().map(|s| s.value).sum::<f64>() / samples.len().max(1) as f64 }
}
