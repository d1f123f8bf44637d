//! Hand-offs: each put with its take.
//!
//! A viewer drops an arrow without a word if it ends before it begins. Two threads' clock readings may disagree by a
//! little, so a take that comes before its put by no more than that is moved onto it, and counted.

use super::counts::Counts;
use dflash_timeline::record::{Flow, FlowEnd};
use std::collections::HashMap;

/// How far the readings of two threads may be apart: they are laid on the monotonic clock at different moments.
pub(super) const UNCERTAINTY_NS: i64 = 100_000;

/// One end of a hand-off, placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct End {
    pub flow: Flow,
    /// The arrow's number, from 1; `None`: it has none.
    pub arrow: Option<u32>,
}

/// A hand-off whose two ends are known: indices into the ends. They are short, for a long run has millions of them; of more
/// than 32 bits can count the memory holds none.
pub(super) type Pair = (u32, u32);

/// Joins the ends, given in the order of time. A hand-off's number may come back: it goes on to the next lane.
pub(super) fn pair(flows: impl Iterator<Item = Flow>, counts: &mut Counts) -> (Vec<End>, Vec<Pair>) {
    let mut ends: Vec<End> = flows.take(u32::MAX as usize).map(|flow| End { flow, arrow: None }).collect();
    let mut pairs = Vec::new();
    let (mut put, mut early): (HashMap<u64, u32>, HashMap<u64, u32>) = (HashMap::new(), HashMap::new());
    for at in 0..ends.len() as u32 {
        let Flow { id, end, lane, time_ns } = ends[at as usize].flow;
        match end {
            FlowEnd::Take => match put.remove(&id) {
                Some(from) => pairs.push((from, at)),
                None => drop(early.insert(id, at)),
            },
            FlowEnd::Put => {
                put.insert(id, at);
                // What the same lane took is what it now puts on: the put of that take is not here.
                let Some(to) = early.remove(&id).filter(|to| ends[*to as usize].flow.lane != lane) else {
                    continue;
                };
                if ends[to as usize].flow.time_ns < time_ns.saturating_sub(UNCERTAINTY_NS) {
                    counts.backwards += 1;
                    continue;
                }
                ends[to as usize].flow.time_ns = time_ns;
                counts.clamped += 1;
                put.remove(&id);
                pairs.push((at, to));
            }
        }
    }
    for (arrow, (from, to)) in (1..).zip(&pairs) {
        ends[*from as usize].arrow = Some(arrow);
        ends[*to as usize].arrow = Some(arrow);
    }
    counts.flows += pairs.len() as u64;
    counts.unpaired += (ends.len() - 2 * pairs.len()) as u64;
    (ends, pairs)
}

#[cfg(test)]
mod tests {
    use super::{Pair, UNCERTAINTY_NS, pair};
    use crate::trace::Counts;
    use dflash_timeline::record::FlowEnd::{self, Put, Take};
    use dflash_timeline::record::{Flow, LaneId};

    fn paired(ends: &[(u64, FlowEnd, u32, i64)]) -> (Vec<Pair>, Vec<i64>, Counts) {
        let mut counts = Counts::default();
        let flows = ends.iter().map(|&(id, end, lane, time_ns)| Flow { id, end, lane: LaneId(lane), time_ns });
        let (ends, pairs) = pair(flows, &mut counts);
        (pairs, ends.iter().map(|end| end.flow.time_ns).collect(), counts)
    }

    #[test]
    fn a_number_goes_from_lane_to_lane() {
        let (pairs, _, counts) =
            paired(&[(7, Put, 0, 1), (7, Take, 1, 2), (7, Put, 1, 3), (8, Put, 0, 4), (7, Take, 2, 5)]);
        assert_eq!(pairs, [(0, 1), (2, 4)]);
        assert_eq!((counts.flows, counts.unpaired, counts.clamped), (2, 1, 0));
    }

    #[test]
    fn a_take_before_its_put_is_moved_if_the_clocks_explain_it() {
        let (pairs, times, counts) = paired(&[(7, Take, 1, 1_000_000), (7, Put, 0, 1_000_000 + UNCERTAINTY_NS)]);
        assert_eq!((pairs, times[0], counts.clamped), (vec![(1, 0)], 1_000_000 + UNCERTAINTY_NS, 1));
        let (pairs, times, counts) = paired(&[(7, Take, 1, 1_000_000), (7, Put, 0, 1_000_001 + UNCERTAINTY_NS)]);
        assert_eq!((pairs.len(), times[0], counts.backwards, counts.unpaired), (0, 1_000_000, 1, 2));
        let (pairs, _, counts) = paired(&[(7, Take, 1, 5), (7, Put, 1, 6), (7, Take, 2, 7)]);
        assert_eq!((pairs, counts.clamped, counts.backwards), (vec![(1, 2)], 0, 0), "a lane does not hand to itself");
    }
}
