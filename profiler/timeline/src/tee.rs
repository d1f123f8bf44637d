//! Records on their way to a visitor.

use crate::part::Window;
use crate::record::{
    Anchor, Awaited, DeviceAnchor, Flow, Iteration, LaneId, LaterTime, Mark, Sample, Span, StackSample,
};
use crate::visit::{Account, Visit};

/// Hands records on, less what lies outside of the window; accounts are noted, too.
pub(crate) struct Tee<'a, V> {
    pub visit: V,
    /// The block's place among what was found.
    pub place: usize,
    pub cut: Option<Window>,
    pub accounts: &'a mut Vec<(usize, Account)>,
}

impl<V> Tee<'_, V> {
    #[inline]
    fn wanted(&self, begin_ns: i64, duration_ns: u64) -> bool {
        self.cut.is_none_or(|window| window.meets(begin_ns, duration_ns))
    }
}

impl<V: Visit> Visit for Tee<'_, V> {
    fn wants(&self, lane: LaneId) -> bool {
        self.visit.wants(lane)
    }

    // A span that goes through memory on its way waits for itself there: it is to stay in registers.
    #[inline(always)]
    fn span(&mut self, span: Span) {
        if self.wanted(span.begin_ns, span.duration_ns) {
            self.visit.span(span);
        }
    }

    #[inline(always)]
    fn spans(&mut self, lane: LaneId, spans: impl Iterator<Item = Span>) {
        match self.cut {
            None => self.visit.spans(lane, spans),
            Some(_) => {
                for span in spans {
                    self.span(span);
                }
            }
        }
    }

    fn iteration(&mut self, iteration: Iteration) {
        if self.wanted(iteration.begin_ns, iteration.duration_ns) {
            self.visit.iteration(iteration);
        }
    }

    #[inline]
    fn sample(&mut self, sample: Sample) {
        if self.wanted(sample.time_ns, 0) {
            self.visit.sample(sample);
        }
    }

    fn flow(&mut self, flow: Flow) {
        if self.wanted(flow.time_ns, 0) {
            self.visit.flow(flow);
        }
    }

    fn mark(&mut self, mark: Mark) {
        if self.wanted(mark.time_ns, 0) {
            self.visit.mark(mark);
        }
    }

    fn stack(&mut self, stack: StackSample) {
        if self.wanted(stack.time_ns, 0) {
            self.visit.stack(stack);
        }
    }

    fn anchor(&mut self, anchor: Anchor) {
        self.visit.anchor(anchor);
    }

    fn device_anchor(&mut self, anchor: DeviceAnchor) {
        self.visit.device_anchor(anchor);
    }

    fn later(&mut self, time: LaterTime) {
        self.visit.later(time);
    }

    fn awaited(&mut self, awaited: Awaited) {
        self.visit.awaited(awaited);
    }

    fn account(&mut self, account: Account) {
        self.accounts.push((self.place, account.clone()));
        self.visit.account(account);
    }
}
