//! Counters with what their readings say: what every section that reads counters begins with.

use crate::allocator;
use crate::gpu::{self, throttle::Throttled};
use crate::queues;
use crate::survey::{CounterSurvey, Survey};
use crate::walk::Window;
use dflash_timeline::Timeline;
use dflash_timeline::record::{Counter, CounterId, Sample};
use serde::Serialize;

/// What is said about the readings of one counter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Range {
    /// Readings.
    pub readings: u64,
    /// Their plain mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

/// What one counter's readings say; those that are no finite number are left out.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reading {
    pub range: Range,
    pub first: Sample,
    pub last: Sample,
    /// How much it grew, if it only grows. A step back is a start from 0 (a resumed run).
    pub growth: f64,
    /// Mean, each reading weighted by the time until the next.
    pub mean_in_time: f64,
    /// Time that the readings were held in all, at zero (or below), and at the capacity, nanoseconds.
    pub held_ns: f64,
    pub empty_ns: f64,
    pub full_ns: f64,
    /// The capacity, of a queue's depth.
    pub full_at: Option<f64>,
    /// Sum of what moved, for counters of events; and of that, what moved late.
    pub moved: u64,
    pub late: u64,
    pub throttled: Throttled,
}

impl Reading {
    /// Seconds from the first reading to the last; `None` if there are none between.
    pub(crate) fn seconds(&self) -> Option<f64> {
        let ns = self.last.time_ns.saturating_sub(self.first.time_ns);
        (ns > 0).then_some(ns as f64 / 1e9)
    }
}

/// What is known of a counter before its readings come.
#[derive(Clone, Copy, Debug, Default)]
struct Plan {
    wanted: bool,
    survey: CounterSurvey,
    /// The reading at which it is full.
    full_at: Option<f64>,
    /// From when on what moves is late.
    late_from: Option<i64>,
    throttles: bool,
}

/// All counters of a window, which take their readings in the order of time.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    plans: Vec<Plan>,
    all: Vec<Option<Reading>>,
}

impl Readings {
    /// Prepares for what the survey has seen.
    pub(crate) fn new(timeline: &Timeline, window: &Window, survey: &Survey) -> Self {
        let capacities = queues::capacities(timeline, survey);
        let plan = |(counter, own): (&Counter, &CounterSurvey)| Plan {
            wanted: window.has_rank(counter.rank) && own.readings > 0,
            survey: *own,
            full_at: queues::capacity(&capacities, counter),
            late_from: allocator::late_from(timeline, survey, counter),
            throttles: gpu::parts(&counter.name).is_some_and(|(_, sensor)| sensor == "throttle"),
        };
        let plans: Vec<Plan> = timeline.counters.iter().zip(&survey.counters).map(plan).collect();
        Self { all: vec![None; plans.len()], plans }
    }

    /// Of a timeline in memory.
    pub(crate) fn of(timeline: &Timeline, window: &Window, survey: &Survey) -> Self {
        let mut readings = Self::new(timeline, window, survey);
        let inside = timeline.samples.iter().filter(|sample| window.has_time(sample.time_ns));
        inside.for_each(|sample| readings.add(sample));
        readings
    }

    /// Takes a reading that lies in the window.
    pub(crate) fn add(&mut self, sample: &Sample) {
        let CounterId(id) = sample.counter;
        let (Some(plan), Some(reading)) = (self.plans.get(id as usize), self.all.get_mut(id as usize)) else { return };
        if !plan.wanted || !sample.value.is_finite() {
            return;
        }
        match reading {
            Some(reading) => reading.add(plan, sample),
            None => *reading = Some(Reading::begin(plan, sample)),
        }
    }

    /// The counters whose name `parse` understands, with their readings; those without a reading are left out.
    pub(crate) fn wanted<'a, T>(
        &'a self,
        timeline: &'a Timeline,
        parse: impl Fn(&'a Counter) -> Option<T>,
    ) -> impl Iterator<Item = (&'a Counter, T, &'a Reading)> {
        let all = timeline.counters.iter().zip(&self.all);
        all.filter_map(move |(counter, reading)| Some((counter, parse(counter)?, reading.as_ref()?)))
    }
}

impl Reading {
    fn begin(plan: &Plan, sample: &Sample) -> Self {
        let range = Range { readings: 0, mean: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY };
        let (growth, mean_in_time, held_ns, empty_ns, full_ns, moved, late) = (0.0, 0.0, 0.0, 0.0, 0.0, 0, 0);
        let (first, last, throttled, full_at) = (*sample, *sample, Throttled::default(), plan.full_at);
        let mut new = Self {
            range,
            first,
            last,
            growth,
            mean_in_time,
            held_ns,
            empty_ns,
            full_ns,
            full_at,
            moved,
            late,
            throttled,
        };
        new.one(plan, sample);
        new
    }

    fn add(&mut self, plan: &Plan, sample: &Sample) {
        let (before, value) = (self.last.value, sample.value);
        self.growth += if value < before { value } else { value - before };
        let ns = sample.time_ns.saturating_sub(self.last.time_ns).max(0);
        let held = ns as f64;
        let time = plan.survey.times.map_or(0.0, |(first, last)| last.saturating_sub(first) as f64);
        if time > 0.0 {
            self.mean_in_time += before * (held / time);
        }
        self.held_ns += held;
        self.empty_ns += if before <= 0.0 { held } else { 0.0 };
        self.full_ns += if plan.full_at.is_some_and(|full| before >= full) { held } else { 0.0 };
        if plan.throttles {
            self.throttled.hold(before, ns.unsigned_abs());
        }
        self.one(plan, sample);
        self.last = *sample;
    }

    /// What a reading says by itself.
    fn one(&mut self, plan: &Plan, sample: &Sample) {
        let CounterSurvey { readings, times, .. } = plan.survey;
        let part = sample.value / readings.max(1) as f64;
        self.range.readings += 1;
        self.range.mean += part;
        self.range.min = self.range.min.min(sample.value);
        self.range.max = self.range.max.max(sample.value);
        if times.is_none_or(|(first, last)| last <= first) {
            // Readings of one moment are averaged plainly.
            self.mean_in_time += part;
        }
        let moved = sample.value.max(0.0).round() as u64;
        self.moved = self.moved.saturating_add(moved);
        if plan.late_from.is_some_and(|from| sample.time_ns > from) {
            self.late = self.late.saturating_add(moved);
        }
        if plan.throttles {
            self.throttled.count(sample.value);
        }
    }
}
