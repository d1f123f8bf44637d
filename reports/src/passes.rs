//! Iterations with their spans out of a stream of records, so that a run need not stand in memory.
//!
//! A lane's records come in the order in which they ended: children before the span around them, spans before their
//! iteration. What came since a lane's last iteration is all that is kept.

mod taking;

pub(crate) use self::taking::Taking;
use crate::walk::{Placed, is_within, place};
use dflash_timeline::Timeline;
use dflash_timeline::record::{Anchor, Flow, Iteration, LaneId, Mark, Sample, Span, StackSample};

/// Takes records one by one. Ids are those of the timeline that `texts` showed last.
pub(crate) trait Take {
    /// Names and lanes that the records after this call may use.
    fn texts(&mut self, timeline: &Timeline) {
        let _ = timeline;
    }
    /// Whether spans of a lane are of use; of the others some may come all the same.
    fn wants(&self, lane: LaneId) -> bool {
        let _ = lane;
        true
    }
    /// A span.
    fn span(&mut self, span: &Span) {
        let _ = span;
    }
    /// An iteration.
    fn iteration(&mut self, iteration: &Iteration) {
        let _ = iteration;
    }
    /// A sampled stack.
    fn stack(&mut self, stack: &StackSample) {
        let _ = stack;
    }
    /// A reading of a counter.
    fn sample(&mut self, sample: &Sample) {
        let _ = sample;
    }
    /// One end of a hand-off.
    fn flow(&mut self, flow: &Flow) {
        let _ = flow;
    }
    /// A mark.
    fn mark(&mut self, mark: &Mark) {
        let _ = mark;
    }
    /// A clock anchor.
    fn anchor(&mut self, anchor: &Anchor) {
        let _ = anchor;
    }
}

/// Clock anchors as a timeline in memory has them: sorted, each once.
pub(crate) fn settled(mut anchors: Vec<Anchor>) -> Vec<Anchor> {
    anchors.sort_by_key(|anchor| (anchor.monotonic_ns, anchor.realtime_ns));
    anchors.dedup();
    anchors
}

/// Hands the records of a timeline over in an order in which they might have come.
pub(crate) fn feed(timeline: &Timeline, take: &mut impl Take) {
    take.texts(timeline);
    let mut rest = timeline.spans.as_slice();
    for iteration in &timeline.iterations {
        let before =
            |span: &&Span| span.lane < iteration.lane || span.lane == iteration.lane && belongs(span, iteration);
        let count = rest.iter().take_while(before).count();
        let (now, later) = rest.split_at(count);
        now.iter().for_each(|span| take.span(span));
        take.iteration(iteration);
        rest = later;
    }
    rest.iter().for_each(|span| take.span(span));
    timeline.stacks.iter().for_each(|stack| take.stack(stack));
    timeline.samples.iter().for_each(|sample| take.sample(sample));
    timeline.flows.iter().for_each(|flow| take.flow(flow));
    timeline.marks.iter().for_each(|mark| take.mark(mark));
    timeline.anchors.iter().for_each(|anchor| take.anchor(anchor));
}

fn belongs(span: &Span, iteration: &Iteration) -> bool {
    span.begin_ns < iteration.begin_ns || is_within(span, iteration)
}

/// Spans of a lane that wait for an iteration at most: more come only where the iterations' records are lost.
const MOST_WAITING: usize = 1 << 22;

/// Spans that wait for their iteration, by lane.
#[derive(Debug, Default)]
pub(crate) struct Passes {
    lanes: Vec<Vec<Span>>,
    around: Vec<usize>,
    strays: u64,
}

impl Passes {
    /// Keeps a span until its iteration comes. One outside of every iteration has none.
    #[inline(always)]
    pub(crate) fn span(&mut self, span: &Span) {
        if span.iteration.is_none() {
            return;
        }
        match self.lanes.get_mut(span.lane.0 as usize) {
            // That there are not too many is looked at where more room would be made.
            Some(waiting) if waiting.len() < waiting.capacity() => waiting.push(*span),
            _ => self.span_further(*span),
        }
    }

    /// The same where there is no room for it yet.
    #[cold]
    fn span_further(&mut self, span: Span) {
        let lane = span.lane.0 as usize;
        if lane >= self.lanes.len() {
            self.lanes.resize_with(lane + 1, Vec::new);
        }
        let waiting = &mut self.lanes[lane];
        if waiting.len() >= MOST_WAITING {
            self.strays += waiting.drain(..MOST_WAITING / 2).count() as u64;
        }
        waiting.push(span);
    }

    /// Hands an iteration to `visit` with its spans, parents before children.
    pub(crate) fn iteration(&mut self, iteration: &Iteration, visit: impl FnOnce(&Iteration, &[Placed<'_>])) {
        let LaneId(lane) = iteration.lane;
        let mut nothing = Vec::new();
        let waiting = self.lanes.get_mut(lane as usize).unwrap_or(&mut nothing);
        // Stable, and quick on what is nearly sorted.
        waiting.sort_by_key(|span| (span.begin_ns, span.depth));
        let begin = waiting.partition_point(|span| span.begin_ns < iteration.begin_ns);
        let length = waiting[begin..].iter().take_while(|span| is_within(span, iteration)).count();
        let mut placed = Vec::with_capacity(length);
        let inside = &waiting[begin..begin + length];
        self.strays += begin as u64 + place(inside, iteration.number, &mut placed, &mut self.around);
        visit(iteration, &placed);
        drop(placed);
        waiting.drain(..begin + length);
    }

    /// Adds what another lane's spans came to.
    pub(crate) fn join(&mut self, other: &Self) {
        self.strays += other.strays();
    }

    /// Spans that found no place, those that still wait among them.
    pub(crate) fn strays(&self) -> u64 {
        self.strays + self.lanes.iter().map(Vec::len).sum::<usize>() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::{Passes, Take, feed};
    use crate::walk::{Window, for_each_pass};
    use dflash_timeline::Timeline;
    use dflash_timeline::record::{Iteration, Kind, Lane, LaneId, NameId, Span};
    use proptest::prelude::*;

    type Seen = Vec<(u32, u64, Vec<(u32, Option<usize>)>)>;

    #[derive(Default)]
    struct Listing(Passes, Seen);

    impl Take for Listing {
        fn span(&mut self, span: &Span) {
            self.0.span(span);
        }

        fn iteration(&mut self, iteration: &Iteration) {
            let seen = &mut self.1;
            self.0.iteration(iteration, |iteration, placed| {
                let spans = placed.iter().map(|placed| (placed.span.name.0, placed.parent)).collect();
                seen.push((iteration.lane.0, iteration.number, spans));
            });
        }
    }

    proptest! {
        /// Whatever a damaged stream may hold, both ways see the same spans in the same iterations.
        #[test]
        fn a_stream_gives_what_a_timeline_gives(
            spans in prop::collection::vec((0_u32..2, 0_i64..60, 0_u64..20, 0_u8..3, 0_u64..4), 0..60),
            lengths in prop::collection::vec((0_u64..20, 0_i64..5), 0..4),
        ) {
            let mut timeline = Timeline::default();
            for lane in 0..2 {
                timeline.lanes.push(Lane { name: lane.to_string(), device: "cpu".into(), rank: 0 });
                let mut begin_ns = 3;
                for (number, (duration_ns, gap)) in lengths.iter().enumerate() {
                    let (number, kind) = (number as u64, Kind::Train);
                    let lane = LaneId(lane);
                    let (cpu_ns, tokens) = (None, None);
                    timeline.iterations.push(Iteration { lane, number, kind, begin_ns, duration_ns: *duration_ns, cpu_ns, tokens });
                    begin_ns += *duration_ns as i64 + gap;
                }
            }
            for (name, (lane, begin_ns, duration_ns, depth, iteration)) in spans.into_iter().enumerate() {
                let (name, lane, iteration) = (NameId(name as u32), LaneId(lane), Some(iteration));
                timeline.spans.push(Span { name, lane, iteration, index: None, depth, begin_ns, duration_ns, device: None });
            }
            timeline.spans.sort_by_key(|span| (span.lane, span.begin_ns, span.depth));
            let mut expected: Seen = Vec::new();
            let strays = for_each_pass(&timeline, &Window::default(), |iteration, placed| {
                let spans = placed.iter().map(|placed| (placed.span.name.0, placed.parent)).collect();
                expected.push((iteration.lane.0, iteration.number, spans));
            });
            let mut listing = Listing::default();
            feed(&timeline, &mut listing);
            prop_assert_eq!(listing.0.strays(), strays);
            prop_assert_eq!(listing.1, expected);
        }
    }
}
