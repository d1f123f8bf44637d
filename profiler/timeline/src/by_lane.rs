//! Spans of all lanes in one list, lane after lane: what came is put into the list, not both into another one. A view that
//! follows a run does this every second, and a second list is as long as all that it keeps in memory.

use crate::order;
use crate::record::{LaneId, Span};

/// Puts what came, of each batch by lane, behind what its lane has, and each lane in order.
pub(crate) fn put(spans: &mut Vec<Span>, new: Vec<Vec<Vec<Span>>>, lanes: usize) {
    let Some(any) = new.iter().flatten().flatten().next().copied() else { return };
    let mut end = spans.len();
    // Made longer, with anything in the new places.
    spans.resize(end + new.iter().flatten().map(Vec::len).sum::<usize>(), any);
    let (mut place, mut new) = (spans.len(), new);
    // From the last lane on, so that nothing is written over before it has been moved on.
    for lane in (0..lanes).rev() {
        let begin = spans[..end].partition_point(|span| span.lane < LaneId(lane as u32));
        let came: Vec<Vec<Span>> = new.iter_mut().filter_map(|part| part.get_mut(lane)).map(std::mem::take).collect();
        let count = came.iter().map(Vec::len).sum::<usize>();
        let from = place - count - (end - begin);
        spans.copy_within(begin..end, from);
        let mut at = from + (end - begin);
        for part in came {
            spans[at..at + part.len()].copy_from_slice(&part);
            at += part.len();
        }
        if count > 0 {
            order::sort(&mut spans[from..place], |span| (span.begin_ns, span.depth));
        }
        (end, place) = (begin, from);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::record::NameId;

    const LANES: usize = 4;

    fn span(lane: u32, begin_ns: i64, number: u64) -> Span {
        let (name, iteration, index) = (NameId(0), Some(number), None);
        Span { name, lane: LaneId(lane), iteration, index, depth: 0, begin_ns, duration_ns: 1, device: None }
    }

    proptest! {
        /// Batch after batch, of lanes that become more: as one list sorted by lane and begin.
        #[test]
        fn as_sorting_all_of_it_does(
            rounds in proptest::collection::vec(
                proptest::collection::vec(proptest::collection::vec((0..LANES as u32, 0..50_i64), 0..20), 0..3),
                0..5,
            )
        ) {
            let (mut spans, mut all, mut number) = (Vec::new(), Vec::new(), 0);
            for round in rounds {
                let batches = round.into_iter().map(|batch| {
                    let known = batch.iter().map(|(lane, _)| *lane as usize + 1).max().unwrap_or(0);
                    let mut by_lane = vec![Vec::new(); known];
                    for (lane, begin_ns) in batch {
                        number += 1;
                        by_lane[lane as usize].push(span(lane, begin_ns, number));
                        all.push(span(lane, begin_ns, number));
                    }
                    by_lane
                });
                put(&mut spans, batches.collect(), LANES);
                all.sort_by_key(|span| (span.lane, span.begin_ns, span.depth));
                prop_assert_eq!(&spans, &all);
            }
        }
    }
}
