//! Counters in summary: how full the queues were, and what the profiler itself cost.

use crate::counters::Readings;
use crate::survey::Survey;
use crate::walk::Window;
use dflash_timeline::Timeline;
use dflash_timeline::record::Counter;
use serde::Serialize;
use std::collections::HashMap;

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
    rows(timeline, &Readings::of(timeline, window, &Survey::of_counters(timeline, window)))
}

pub(crate) fn rows(timeline: &Timeline, readings: &Readings) -> Vec<QueueRow> {
    let queues = readings.wanted(timeline, |counter| queue_of(&counter.name));
    let rows = queues.map(|(counter, queue, reading)| {
        let share = |part: f64| (reading.held_ns > 0.0).then(|| part / reading.held_ns);
        let capacity = reading.full_at;
        QueueRow {
            queue: queue.to_owned(),
            rank: counter.rank,
            samples: reading.range.readings,
            mean: reading.mean_in_time,
            empty_share: share(reading.empty_ns),
            full_share: capacity.and_then(|_| share(reading.full_ns)),
            capacity,
            max: reading.range.max,
            last: reading.last.value,
        }
    });
    rows.collect()
}

/// The latest capacities by rank and queue. They are said once, at the start, which a window may not reach.
pub(crate) fn capacities<'a>(timeline: &'a Timeline, survey: &Survey) -> HashMap<(u32, &'a str), f64> {
    let all = timeline.counters.iter().zip(&survey.counters);
    let known = all.filter_map(|(counter, survey)| {
        let (_, capacity) = survey.latest?;
        Some(((counter.rank, capacity_of(&counter.name)?), capacity))
    });
    known.collect()
}

/// The capacity of the queue whose depth a counter is.
pub(crate) fn capacity(capacities: &HashMap<(u32, &str), f64>, counter: &Counter) -> Option<f64> {
    capacities.get(&(counter.rank, queue_of(&counter.name)?)).copied()
}

/// Whether there are queues in the window whose capacity is not known.
pub(crate) fn lacks_capacity(timeline: &Timeline, survey: &Survey) -> bool {
    let capacities = capacities(timeline, survey);
    let all = timeline.counters.iter().zip(&survey.counters).filter(|(_, survey)| survey.readings > 0);
    all.filter(|(counter, _)| queue_of(&counter.name).is_some())
        .any(|(counter, _)| capacity(&capacities, counter).is_none())
}

/// The counters that the profiler keeps about its own work (`profiler.*`), without those that do not only grow: the cost
/// that it measures (`profiler.cost.*`), and how well it samples (`profiler.sampling.*`).
pub(crate) fn profiler_counters(timeline: &Timeline, readings: &Readings) -> Vec<CounterRow> {
    let other = ["profiler.cost.", "profiler.sampling."];
    let grows = |name: &str| name.starts_with("profiler.") && !other.iter().any(|prefix| name.starts_with(prefix));
    let rows = readings.wanted(timeline, |counter| grows(&counter.name).then_some(()));
    let rows = rows.map(|(counter, (), reading)| CounterRow {
        counter: counter.name.clone(),
        unit: counter.unit.clone(),
        rank: counter.rank,
        growth: reading.growth,
        per_s: reading.seconds().map(|seconds| reading.growth / seconds),
    });
    rows.collect()
}

fn queue_of(name: &str) -> Option<&str> {
    name.strip_prefix("queue.")?.strip_suffix(".depth")
}

fn capacity_of(name: &str) -> Option<&str> {
    name.strip_prefix("queue.")?.strip_suffix(".capacity")
}
