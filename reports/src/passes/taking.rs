//! Between the reader of a stream and who takes its records.

use super::Take;
use dflash_timeline::record::{Anchor, Flow, Iteration, LaneId, Mark, Sample, Span, StackSample};
use dflash_timeline::{Timeline, Visit};

/// Takes the records of a stream as they come.
pub(crate) struct Taking<'a, T: Take>(pub &'a mut T);

impl<T: Take> Visit for Taking<'_, T> {
    fn texts(&mut self, timeline: &Timeline) {
        self.0.texts(timeline);
    }

    fn wants(&self, lane: LaneId) -> bool {
        self.0.wants(lane)
    }

    // As in the stream: it is to stay in registers.
    #[inline(always)]
    fn span(&mut self, span: Span) {
        self.0.span(&span);
    }

    fn iteration(&mut self, iteration: Iteration) {
        self.0.iteration(&iteration);
    }

    fn stack(&mut self, stack: StackSample) {
        self.0.stack(&stack);
    }

    #[inline]
    fn sample(&mut self, sample: Sample) {
        self.0.sample(&sample);
    }

    fn flow(&mut self, flow: Flow) {
        self.0.flow(&flow);
    }

    fn mark(&mut self, mark: Mark) {
        self.0.mark(&mark);
    }

    fn anchor(&mut self, anchor: Anchor) {
        self.0.anchor(&anchor);
    }
}
