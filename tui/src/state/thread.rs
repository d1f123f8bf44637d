//! CPU time by thread, from counters `thread.<name>.cpu`, beside what each lane's thread is doing.

use std::time::Duration;

use dflash_reports::timeline::Timeline;

use super::counters::Histories;
use super::model::Lane;

/// A thread that takes less than this all the time does not work; it would be shown as 0.0.
const IDLE: f64 = 0.05;

/// One thread of the training process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thread {
    /// What it is called; a lane's thread bears the lane's name.
    pub name: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// Percent of one core at the newest reading.
    pub cpu: f64,
    /// The same over the window.
    pub curve: Vec<Option<f64>>,
    /// The innermost open span, and for how long; `None`: it is no lane's thread, or in no span.
    pub inside: Option<(String, Duration)>,
    /// Whether it is a lane's.
    pub is_lane: bool,
}

/// The threads that worked in the window, and those of the lanes.
pub fn threads(timeline: &Timeline, histories: &Histories, lanes: &[Lane]) -> Vec<Thread> {
    let mut threads = Vec::new();
    for (counter, history) in timeline.counters.iter().zip(histories.all()) {
        let name = counter.name.strip_prefix("thread.").and_then(|rest| rest.strip_suffix(".cpu"));
        let (Some(name), Some((_, cpu))) = (name, history.newest) else { continue };
        let lane = lanes.iter().find(|lane| lane.name == name && lane.rank == counter.rank);
        let curve = history.curve();
        // A thread that has ended rests at 0 for ever, and dozens of a pool's threads may never do anything.
        if lane.is_none() && cpu < IDLE && curve.iter().flatten().all(|value| *value < IDLE) {
            continue;
        }
        threads.push(Thread {
            name: name.to_owned(),
            rank: counter.rank,
            cpu,
            curve: held(&curve, history.before),
            inside: lane.and_then(|lane| lane.inside.clone()),
            is_lane: lane.is_some(),
        });
    }
    threads.sort_by(|a, b| b.cpu.total_cmp(&a.cpu).then_with(|| a.name.cmp(&b.name)));
    threads
}

/// A thread that rests is read as 0 once: what was read holds until the next reading.
pub fn held(curve: &[Option<f64>], mut value: Option<f64>) -> Vec<Option<f64>> {
    let hold = |mean: &Option<f64>| {
        value = mean.or(value);
        value
    };
    curve.iter().map(hold).collect()
}
