//! The queues between the lanes: how full they were, over time.

use dflash_reports::queues::QueueRow;
use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::CounterId;

use super::series::{Bins, Means};

/// One queue's depth.
#[derive(Clone, Debug, PartialEq)]
pub struct Queue {
    /// Its numbers.
    pub row: QueueRow,
    /// `items`, `bytes`, ….
    pub unit: String,
    /// Depth in each part of the window; `None` before the first sample.
    pub depth: Vec<Option<f64>>,
    /// What it holds at most (`queue.<name>.capacity`), where the run says so.
    pub capacity: Option<f64>,
}

impl Queue {
    /// The depth that a graph of it reaches up to.
    #[must_use]
    pub fn top(&self) -> f64 {
        self.capacity.unwrap_or(0.0).max(self.row.max).max(1.0)
    }
}

/// The queues of a timeline with the curves of their depths.
pub fn queues(timeline: &Timeline, rows: &[QueueRow], (from_ns, to_ns): (i64, i64)) -> Vec<Queue> {
    let with_curve = |row: &QueueRow| {
        let name = format!("queue.{}.depth", row.queue);
        let id = counter(timeline, &name, row.rank)?;
        Some(Queue {
            row: row.clone(),
            unit: timeline.counters[id].unit.clone(),
            depth: depth(timeline, CounterId(u32::try_from(id).ok()?), (from_ns, to_ns)),
            capacity: capacity(timeline, row),
        })
    };
    rows.iter().filter_map(with_curve).collect()
}

fn counter(timeline: &Timeline, name: &str, rank: u32) -> Option<usize> {
    timeline.counters.iter().position(|counter| counter.name == name && counter.rank == rank)
}

/// A depth holds until the next sample, so a part without one has the depth of the part before.
fn depth(timeline: &Timeline, id: CounterId, (from_ns, to_ns): (i64, i64)) -> Vec<Option<f64>> {
    let bins = Bins::new(from_ns, to_ns);
    let mut means = Means::default();
    let mut held = None;
    for sample in timeline.samples.iter().filter(|sample| sample.counter == id && sample.value.is_finite()) {
        if sample.time_ns < from_ns {
            held = Some(sample.value);
        } else {
            means.add(bins.index(sample.time_ns), sample.value);
        }
    }
    let hold = |mean: Option<f64>| {
        held = mean.or(held);
        held
    };
    means.values().into_iter().map(hold).collect()
}

fn capacity(timeline: &Timeline, row: &QueueRow) -> Option<f64> {
    let id = counter(timeline, &format!("queue.{}.capacity", row.queue), row.rank)?;
    let sample = timeline.samples.iter().rev().find(|sample| sample.counter.0 as usize == id)?;
    (sample.value > 0.0 && sample.value.is_finite()).then_some(sample.value)
}

#[cfg(test)]
mod tests {
    use dflash_reports::stages::Window;
    use dflash_reports::timeline::record::{Counter, Sample};

    use super::*;

    #[test]
    fn a_depth_holds_until_the_next_sample() {
        let counter = |name: &str| Counter { name: name.to_owned(), unit: "items".to_owned(), rank: 0 };
        let sample = |id, time_ns, value| Sample { counter: CounterId(id), time_ns, value };
        let timeline = Timeline {
            counters: vec![
                counter("thread.loader.cpu"),
                counter("queue.batches.depth"),
                counter("queue.batches.capacity"),
            ],
            samples: vec![sample(2, 0, 4.0), sample(1, 120, 1.0), sample(1, 200, 3.0), sample(0, 210, 9.0)],
            ..Timeline::default()
        };
        let rows = dflash_reports::queues::queues(&timeline, &Window::default());
        let found = queues(&timeline, &rows, (0, 239));
        assert_eq!((found.len(), found[0].capacity, found[0].top()), (1, Some(4.0), 4.0));
        let depth = &found[0].depth;
        assert_eq!((depth[119], depth[120], depth[199], depth[239]), (None, Some(1.0), Some(1.0), Some(3.0)));
    }
}
