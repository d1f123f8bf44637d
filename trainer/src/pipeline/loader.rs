//! The lane `loader`: picks samples, pads them to a batch, puts it into the queue.

use super::order::Order;
use super::run::Shared;
use super::{Batch, lane};
use dflash_profiler::{begin_iteration, flow_put, span, timeline::record::Kind};
use std::time::Instant;
use tch::Tensor;

/// Name of the lane.
pub(super) const LANE: &str = "loader";

/// Makes `shared.steps` batches, or until the queue is closed; returns the loop's seconds.
pub(super) fn load(shared: &Shared<'_>, mut order: Order) -> Result<f64, String> {
    let depth = shared.profiler.counter("queue.batches.depth", "items");
    let began = Instant::now();
    for number in 0..shared.steps as u64 {
        let guard = begin_iteration(shared.kind(number));
        let samples = {
            let _span = span!("load.read");
            order.next()
        };
        let batch = {
            let _span = span!("load.pack");
            let rows: Vec<&[i64]> = samples.iter().map(|&i| shared.samples[i].ids.as_slice()).collect();
            Batch { number, ids: pad(&rows), samples }
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

/// Rows padded with zeros at their end to the longest: [b, S] Int64.
fn pad(rows: &[&[i64]]) -> Tensor {
    let longest = rows.iter().map(|r| r.len()).max().unwrap_or(0);
    let flat: Vec<i64> =
        rows.iter().flat_map(|r| r.iter().copied().chain(std::iter::repeat_n(0, longest - r.len()))).collect();
    Tensor::from_slice(&flat).view([rows.len() as i64, longest as i64])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_padded_at_their_end() {
        let t = pad(&[&[1, 2, 3], &[4]]);
        assert_eq!(t.size(), [2, 3]);
        assert_eq!(Vec::<i64>::try_from(t.view([-1])).unwrap(), [1, 2, 3, 4, 0, 0]);
    }
}
