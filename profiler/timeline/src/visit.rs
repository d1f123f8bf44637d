//! What a reader may do with records as they come.

use crate::record::{Anchor, DeviceAnchor, Expired, Flow, Iteration, LaneId, LaneTotals, Mark, OpenSpan, Sample, Span};
use crate::record::{Awaited, LaterTime, StackSample, Totals};
use crate::timeline::Timeline;

/// Takes the records of a stream one by one, in the order in which they were written. What is not taken is left out.
///
/// Ids are those of the [`Timeline`] that [`texts`](Self::texts) shows and that [`visit`](crate::visit) returns.
pub trait Visit {
    /// Names, lanes, counters or streams have come that the records after this call may use.
    fn texts(&mut self, timeline: &Timeline) {
        let _ = timeline;
    }
    /// Whether spans of a lane are of use. Most of those that are not are passed by, which is quicker than to hand them
    /// over; some come all the same.
    fn wants(&self, lane: LaneId) -> bool {
        let _ = lane;
        true
    }
    /// A span.
    fn span(&mut self, span: Span) {
        let _ = span;
    }
    /// Spans that follow each other on a lane. They go to [`span`](Self::span), unless a visitor does here once what is alike
    /// for all of them; what it leaves of them is lost. Some spans come to `span` by themselves all the same.
    #[inline(always)]
    fn spans(&mut self, lane: LaneId, spans: impl Iterator<Item = Span>)
    where
        Self: Sized,
    {
        let _ = lane;
        for span in spans {
            self.span(span);
        }
    }
    /// An iteration.
    fn iteration(&mut self, iteration: Iteration) {
        let _ = iteration;
    }
    /// A reading of a counter.
    fn sample(&mut self, sample: Sample) {
        let _ = sample;
    }
    /// One end of a hand-off.
    fn flow(&mut self, flow: Flow) {
        let _ = flow;
    }
    /// A mark.
    fn mark(&mut self, mark: Mark) {
        let _ = mark;
    }
    /// A sampled stack.
    fn stack(&mut self, stack: StackSample) {
        let _ = stack;
    }
    /// A clock anchor; the first one is repeated in each segment.
    fn anchor(&mut self, anchor: Anchor) {
        let _ = anchor;
    }
    /// A clock anchor of a device.
    fn device_anchor(&mut self, anchor: DeviceAnchor) {
        let _ = anchor;
    }
    /// A device time of a span that was written without. [`visit`](crate::visit) puts it into the span.
    fn later(&mut self, time: LaterTime) {
        let _ = time;
    }
    /// Of which spans a [`later`](Self::later) time may come. [`visit`](crate::visit) waits for it.
    fn awaited(&mut self, awaited: Awaited) {
        let _ = awaited;
    }
    /// What a block says of the stream as a whole.
    fn account(&mut self, account: Account) {
        let _ = account;
    }
}

/// What a block says of the stream as a whole. The last word counts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Account {
    /// The spans that were open when the block was written.
    Open(Vec<OpenSpan>),
    /// The totals so far.
    Totals(Totals),
    /// One lane's totals so far.
    Lane(LaneTotals),
    /// What `keep` has deleted, and the sequence number of the first block that it left.
    Expired(u32, Expired),
}
