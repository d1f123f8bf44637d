//! The lane `loader`: picks samples, pads them to a batch, puts it into the queue.

use super::order::Order;
use super::run::Shared;
use super::{Batch, lane};
use crate::model::pad_rows;
use dflash_profiler::{begin_iteration, flow_put, span, timeline::record::Kind};
use std::time::Instant;

/// Name of the lane.
pub(super) const LANE: &str = "loader";

/// Makes the batches from `shared.first` to `shared.steps`, or until the queue is closed; returns the loop's seconds.
pub(super) fn load(shared: &Shared<'_>, mut order: Order) -> Result<f64, String> {
    let depth = shared.profiler.counter("queue.batches.depth", "items");
    let began = Instant::now();
    for number in shared.first as u64..shared.steps as u64 {
        let guard = begin_iteration(shared.kind(number - shared.first as u64));
        let samples = {
            let _span = span!("load.read");
            order.next()
        };
        let batch = {
            let _span = span!("load.pack");
            let rows: Vec<&[i64]> = samples.iter().map(|&i| shared.samples[i].ids.as_slice()).collect();
            Batch { number, ids: pad_rows(&rows), samples }
        };
        {
            let _span = span!("load.put");
            flow_put(number);
            let Some(now) = shared.batches.put(batch) else {
                guard.kind(Kind::Drain);
                return Ok(began.elapsed().as_secs_f64());
            };
            depth.record(now as f64);
        }
        if (number + 1).is_multiple_of(shared.log_every) {
            lane::report(shared.observer, LANE, number);
        }
    }
    shared.batches.close();
    Ok(began.elapsed().as_secs_f64())
}
