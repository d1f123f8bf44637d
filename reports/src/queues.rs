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
    /// Share of the time in which it was empty: whoever takes from it waits. `None` if all readings are of one moment.
    pub empty_share: Option<f64>,
    /// Share of the time in which it was full, if its capacity is known (`queue.batches.capacity`): whoever puts waits.
    pub full_share: Option<f64>,
    /// Items that it holds at most, if that is known.
    pub capacity: Option<f64>,
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
    // A capacity is said once, at the start, which a window may not reach.
    let always = Window { ranks: window.ranks.clone(), ..Window::default() };
    let capacities = series(timeline, &always, |counter| capacity_of(&counter.name));
    let rows = series(timeline, window, |counter| queue_of(&counter.name));
    let rows = rows.into_iter().map(|(counter, queue, samples)| {
        let own = capacities.iter().find(|(other, name, _)| *name == queue && other.rank == counter.rank);
        let capacity = own.and_then(|(_, _, samples)| samples.last()).map(|sample| sample.value);
        QueueRow {
            queue: queue.to_owned(),
            rank: counter.rank,
            samples: samples.len() as u64,
            mean: weighted_mean(&samples),
            empty_share: share_of_time(&samples, |depth| depth <= 0.0),
            full_share: capacity.and_then(|capacity| share_of_time(&samples, |depth| depth >= capacity)),
            capacity,
            max: samples.iter().map(|s| s.value).fold(f64::NEG_INFINITY, f64::max),
            last: samples.last().map_or(0.0, |s| s.value),
        }
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

fn capacity_of(name: &str) -> Option<&str> {
    name.strip_prefix("queue.")?.strip_suffix(".capacity")
}

/// How much of the time the depth, which holds until the next reading, was such.
fn share_of_time(samples: &[Sample], such: impl Fn(f64) -> bool) -> Option<f64> {
    let (mut part, mut whole) = (0.0, 0.0);
    for pair in samples.windows(2) {
        let held = pair[1].time_ns.saturating_sub(pair[0].time_ns).max(0) as f64;
        whole += held;
        part += if such(pair[0].value) { held } else { 0.0 };
    }
    (whole > 0.0).then(|| part / whole)
}

/// A depth holds until the next reading. Readings of one moment only are averaged plainly.
fn weighted_mean(samples: &[Sample]) -> f64 {
    let held = |pair: &[Sample]| pair[1].time_ns.saturating_sub(pair[0].time_ns).max(0) as f64;
    let time: f64 = samples.windows(2).map(held).sum();
    if time > 0.0 {
        samples.windows(2).map(|pair| pair[0].value * (held(pair) / time)).sum()
    } else {
        samples.iter().map(|s| s.value / samples.len().max(1) as f64).sum()
    }
}
