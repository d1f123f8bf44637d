//! Several timelines in memory as one, for who looks at them again and again.

use super::head::Head;
use super::texts::{Moving, Texts};
use super::{Place, place};
use crate::passes::{Take, feed};
use dflash_timeline::record::{Flow, Iteration, Mark, Sample, Span, StackSample};
use dflash_timeline::{RunDir, Timeline};
use std::sync::{Mutex, PoisonError};

/// Several runs' timelines as one on the first run's clock, and where each run stands.
#[must_use]
pub fn joined<'a>(runs: impl IntoIterator<Item = (&'a RunDir, &'a Timeline)>) -> (Timeline, Vec<Place>) {
    let (texts, mut records, mut books) = (Mutex::new(Texts::default()), Records::default(), Timeline::default());
    let (mut first, mut places): (Option<Head>, Vec<Place>) = (None, Vec::new());
    for (run, timeline) in runs {
        let head = Head::of(timeline);
        let place = place(run, &head, first.as_ref(), &places);
        let mut moving = Moving::new(&texts, &place, &mut records);
        feed(timeline, &mut moving);
        moving.account(own_words(timeline), &mut books);
        if first.is_none() {
            books.device_anchors.clone_from(&timeline.device_anchors);
            first = Some(head);
        }
        places.push(place);
    }
    let Timeline { names, lanes, counters, .. } = texts.into_inner().unwrap_or_else(PoisonError::into_inner).timeline;
    let Timeline { spans, iterations, samples, flows, marks, stacks, .. } = records.settled();
    (Timeline { names, lanes, counters, spans, iterations, samples, flows, marks, stacks, ..books }, places)
}

/// What a stream says of itself.
fn own_words(timeline: &Timeline) -> Timeline {
    Timeline {
        lane_totals: timeline.lane_totals.clone(),
        open: timeline.open.clone(),
        totals: timeline.totals,
        expired: timeline.expired,
        detail_from_ns: timeline.detail_from_ns,
        health: timeline.health.clone(),
        ..Timeline::default()
    }
}

/// The records of all, on one clock.
#[derive(Default)]
struct Records(Timeline);

impl Records {
    /// Sorted as a reader sorts them; what is several sorted runs is quickly sorted.
    fn settled(self) -> Timeline {
        let Self(mut all) = self;
        all.spans.sort_by_key(|s| (s.lane, s.begin_ns, s.depth));
        all.iterations.sort_by_key(|i| (i.lane, i.begin_ns));
        all.samples.sort_by_key(|s| s.time_ns);
        all.flows.sort_by_key(|f| f.time_ns);
        all.marks.sort_by_key(|m| m.time_ns);
        all.stacks.sort_by_key(|s| s.time_ns);
        all
    }
}

impl Take for Records {
    fn span(&mut self, span: &Span) {
        self.0.spans.push(*span);
    }

    fn iteration(&mut self, iteration: &Iteration) {
        self.0.iterations.push(*iteration);
    }

    fn sample(&mut self, sample: &Sample) {
        self.0.samples.push(*sample);
    }

    fn flow(&mut self, flow: &Flow) {
        self.0.flows.push(*flow);
    }

    fn mark(&mut self, mark: &Mark) {
        self.0.marks.push(mark.clone());
    }

    fn stack(&mut self, stack: &StackSample) {
        self.0.stacks.push(stack.clone());
    }
}
