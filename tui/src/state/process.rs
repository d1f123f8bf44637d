//! The training process as a whole, and what the profiler costs it.

use dflash_reports::timeline::Timeline;

use super::counters::Histories;

/// One process in numbers; of several ranks, all of them together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Process {
    /// Percent of one core.
    pub cpu: Option<f64>,
    /// Bytes of memory.
    pub rss: Option<f64>,
    /// Bytes that the caching allocator has taken from each device, and of these, handed out.
    pub allocators: Vec<Allocator>,
    /// What the instrumentation costs each lane, percent of its time: least and most.
    pub cost: Vec<(String, Option<f64>, Option<f64>)>,
}

/// A device's caching allocator.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Allocator {
    /// `cuda:0`, ….
    pub device: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// Bytes taken from the device.
    pub reserved: Option<f64>,
    /// Bytes handed out.
    pub active: Option<f64>,
}

impl Process {
    /// Reads them off the counters.
    #[must_use]
    pub fn of(timeline: &Timeline, histories: &Histories) -> Self {
        let mut found = Self::default();
        for (counter, history) in timeline.counters.iter().zip(histories.all()) {
            let Some((_, value)) = history.newest else { continue };
            match counter.name.as_str() {
                "process.cpu" => *found.cpu.get_or_insert(0.0) += value,
                "process.rss" => *found.rss.get_or_insert(0.0) += value,
                name => {
                    found.add_allocator(name, counter.rank, value);
                    found.add_cost(name, counter.rank, value);
                }
            }
        }
        found
    }

    fn add_allocator(&mut self, name: &str, rank: u32, value: f64) {
        let Some((device, what)) = name.strip_prefix("allocator.").and_then(|rest| rest.split_once('.')) else {
            return;
        };
        if !matches!(what, "reserved" | "active") {
            return;
        }
        let is_its = |known: &Allocator| known.device == device && known.rank == rank;
        let at = self.allocators.iter().position(is_its).unwrap_or_else(|| {
            self.allocators.push(Allocator { device: device.to_owned(), rank, ..Allocator::default() });
            self.allocators.len() - 1
        });
        let allocator = &mut self.allocators[at];
        *(if what == "reserved" { &mut allocator.reserved } else { &mut allocator.active }) = Some(value);
    }

    fn add_cost(&mut self, name: &str, rank: u32, value: f64) {
        let Some((lane, what)) = name.strip_prefix("profiler.cost.").and_then(|rest| rest.rsplit_once('.')) else {
            return;
        };
        if !matches!(what, "low" | "high") {
            return;
        }
        let lane = if rank == 0 { lane.to_owned() } else { format!("{lane} r{rank}") };
        let at = self.cost.iter().position(|(known, ..)| *known == lane).unwrap_or_else(|| {
            self.cost.push((lane, None, None));
            self.cost.len() - 1
        });
        let (_, low, high) = &mut self.cost[at];
        *(if what == "low" { low } else { high }) = Some(value);
    }
}
