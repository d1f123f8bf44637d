//! The queues between the lanes: how full they were, over time.

use dflash_reports::queues::QueueRow;
use dflash_reports::timeline::Timeline;

use super::counters::Histories;
use super::thread::held;

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
pub fn queues(timeline: &Timeline, rows: &[QueueRow], histories: &Histories) -> Vec<Queue> {
    let with_curve = |row: &QueueRow| {
        let id = counter(timeline, &format!("queue.{}.depth", row.queue), row.rank)?;
        let history = histories.at(id)?;
        Some(Queue {
            row: row.clone(),
            unit: timeline.counters[id].unit.clone(),
            // A depth holds until the next reading.
            depth: held(&history.curve(), history.before),
            capacity: capacity(timeline, row, histories),
        })
    };
    rows.iter().filter_map(with_curve).collect()
}

fn counter(timeline: &Timeline, name: &str, rank: u32) -> Option<usize> {
    timeline.counters.iter().position(|counter| counter.name == name && counter.rank == rank)
}

fn capacity(timeline: &Timeline, row: &QueueRow, histories: &Histories) -> Option<f64> {
    let id = counter(timeline, &format!("queue.{}.capacity", row.queue), row.rank)?;
    let (_, value) = histories.at(id)?.newest?;
    (value > 0.0).then_some(value)
}

#[cfg(test)]
mod tests {
    use dflash_reports::stages::Window;
    use dflash_reports::timeline::record::{Counter, CounterId, Sample};

    use super::*;
    use crate::state::series::Bins;

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
        let histories = Histories::of(&timeline, Bins::new(0, 239), (0, 239));
        let found = queues(&timeline, &rows, &histories);
        assert_eq!((found.len(), found[0].capacity, found[0].top()), (1, Some(4.0), 4.0));
        let depth = &found[0].depth;
        assert_eq!((depth[119], depth[120], depth[199], depth[239]), (None, Some(1.0), Some(1.0), Some(3.0)));
    }
}
