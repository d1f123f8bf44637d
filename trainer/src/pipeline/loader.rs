//! The lane `loader`: picks samples, pads them to batches, one a drafter, puts them into the queue.

use super::Batch;
use super::order::Order;
use super::shared::{Among, Shared};
use super::work::{Load, World};
use dflash_profiler::{begin_iteration, flow_put, span, timeline::record::Kind};
use std::collections::HashSet;
use std::time::Instant;

/// Name of the lane.
pub(super) const LANE: &str = "loader";

/// Makes the batches of the steps to make, or until the queue is closed; returns the loop's seconds.
///
/// A step's samples are picked together and then shared out: several drafters see in a step what one drafter with as many
/// times the batch would see.
pub(super) fn load<W: World>(
    shared: &Shared<'_, W>,
    mut work: W::Load,
    mut order: Order,
    batch: usize,
) -> Result<f64, String> {
    let depth = shared.profiler.counter("queue.batches.depth", "items");
    let began = Instant::now();
    let (drafters, of_step, among) = (shared.drafters as u64, shared.step_batches(), shared.among);
    let first = shared.first as u64 * of_step;
    let mut picked = Vec::new();
    let there = (0..shared.samples.len()).filter(|&sample| work.has(sample)).collect();
    let mut seen = Seen { read_once: shared.read_once, samples: there };
    for number in first..shared.steps as u64 * of_step {
        let guard = begin_iteration(shared.kind(number - first));
        let samples = {
            let _span = span!("load.read");
            work.read()?;
            if number.is_multiple_of(drafters) {
                picked = order.next();
            }
            let samples = share(&picked, among.first + (number % drafters) as usize, batch);
            work.fetch(&samples)?;
            samples
        };
        let made = {
            let _span = span!("load.pack");
            let rows: Vec<&[i64]> = samples.iter().map(|&i| shared.samples[i].ids.as_slice()).collect();
            let (ids, unread) = (work.pack(&rows)?, seen.unread(&samples));
            let first_row = among.row(number % of_step, drafters) * batch as u64;
            Batch { number, step: number / of_step, first_row, samples, unread, ids }
        };
        {
            let _span = span!("load.put");
            flow_put(number);
            let began = Instant::now();
            let Some(now) = shared.batches.put(number, made, 0) else {
                guard.kind(Kind::Drain);
                return Ok(began.elapsed().as_secs_f64());
            };
            let _ = shared.waited(&guard, began);
            depth.record(now.items as f64);
        }
        shared.report(LANE, number - first);
    }
    shared.batches.close();
    Ok(began.elapsed().as_secs_f64())
}

impl Among {
    /// Number of a step's batch among those of all processes: of each pick for all drafters this process has `drafters`.
    fn row(self, batch: u64, drafters: u64) -> u64 {
        batch / drafters * self.all as u64 + self.first as u64 + batch % drafters
    }
}

/// A drafter's part of the samples that were picked for all. The last ones of an epoch may be too few for all.
fn share(picked: &[usize], drafter: usize, batch: usize) -> Vec<usize> {
    picked.iter().skip(drafter * batch).take(batch).copied().collect()
}

/// Which samples are in a batch already that somebody reads. Told here, in the loader's order, so that it does not depend
/// on which target is faster.
struct Seen {
    read_once: bool,
    samples: HashSet<usize>,
}

impl Seen {
    /// The rows that the target must read.
    fn unread(&mut self, samples: &[usize]) -> Vec<usize> {
        (0..samples.len()).filter(|&row| !self.read_once || self.samples.insert(samples[row])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_shared_out_in_order_and_the_last_may_get_none() {
        let step = [7, 8, 9];
        assert_eq!([0, 1, 2].map(|drafter| share(&step, drafter, 2)), [vec![7, 8], vec![9], vec![]]);
    }

    #[test]
    fn processes_number_a_steps_batches_as_one_process_would() {
        // Two picks a step; three drafters, of which the second process has two.
        let (one, two) = (Among { first: 0, all: 3 }, Among { first: 1, all: 3 });
        assert_eq!([0, 1].map(|batch| one.row(batch, 1)), [0, 3]);
        assert_eq!([0, 1, 2, 3].map(|batch| two.row(batch, 2)), [1, 2, 4, 5]);
        let alone = Among { first: 0, all: 3 };
        assert_eq!([0, 1, 2, 3, 4, 5].map(|batch| alone.row(batch, 3)), [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_sample_is_read_once_where_it_is_kept() {
        let mut seen = Seen { read_once: true, samples: HashSet::new() };
        assert_eq!((seen.unread(&[3, 4]), seen.unread(&[4, 5, 3])), (vec![0, 1], vec![1]));
        let mut seen = Seen { read_once: false, samples: HashSet::new() };
        assert_eq!((seen.unread(&[3, 4]), seen.unread(&[4])), (vec![0, 1], vec![0]));
    }
}
