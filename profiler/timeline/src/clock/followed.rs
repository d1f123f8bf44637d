//! Records on their way from a block of another host's rank: each is put on rank 0's clock as that is then.

use super::Drift;
use crate::record::{
    Anchor, Awaited, DeviceAnchor, DeviceTime, Flow, Iteration, LaneId, LaterTime, Mark, Sample, Span, StackSample,
};
use crate::visit::{Account, Visit};

/// Hands records on, moved. Begin and end of a stretch are moved each, so that what lies within another still does.
pub(crate) struct Followed<'a, V> {
    pub drift: &'a Drift,
    pub visit: &'a mut V,
}

impl<V> Followed<'_, V> {
    fn device(&self, device: DeviceTime) -> DeviceTime {
        let (begin_ns, duration_ns) = self.drift.stretch(device.begin_ns, device.duration_ns);
        DeviceTime { begin_ns, duration_ns, ..device }
    }
}

impl<V: Visit> Visit for Followed<'_, V> {
    fn wants(&self, lane: LaneId) -> bool {
        self.visit.wants(lane)
    }

    fn span(&mut self, span: Span) {
        let (begin_ns, duration_ns) = self.drift.stretch(span.begin_ns, span.duration_ns);
        let device = span.device.map(|device| self.device(device));
        self.visit.span(Span { begin_ns, duration_ns, device, ..span });
    }

    fn iteration(&mut self, iteration: Iteration) {
        let (begin_ns, duration_ns) = self.drift.stretch(iteration.begin_ns, iteration.duration_ns);
        self.visit.iteration(Iteration { begin_ns, duration_ns, ..iteration });
    }

    fn sample(&mut self, sample: Sample) {
        self.visit.sample(Sample { time_ns: self.drift.at(sample.time_ns), ..sample });
    }

    fn flow(&mut self, flow: Flow) {
        self.visit.flow(Flow { time_ns: self.drift.at(flow.time_ns), ..flow });
    }

    fn mark(&mut self, mark: Mark) {
        self.visit.mark(Mark { time_ns: self.drift.at(mark.time_ns), ..mark });
    }

    fn stack(&mut self, stack: StackSample) {
        self.visit.stack(StackSample { time_ns: self.drift.at(stack.time_ns), ..stack });
    }

    fn anchor(&mut self, anchor: Anchor) {
        self.visit.anchor(Anchor { monotonic_ns: self.drift.at(anchor.monotonic_ns), ..anchor });
    }

    fn device_anchor(&mut self, anchor: DeviceAnchor) {
        self.visit.device_anchor(DeviceAnchor { host_ns: self.drift.at(anchor.host_ns), ..anchor });
    }

    fn later(&mut self, time: LaterTime) {
        let device = self.device(time.device);
        self.visit.later(LaterTime { begin_ns: self.drift.at(time.begin_ns), device, ..time });
    }

    fn awaited(&mut self, awaited: Awaited) {
        self.visit.awaited(Awaited { from_ns: awaited.from_ns.map(|ns| self.drift.at(ns)), ..awaited });
    }

    fn account(&mut self, account: Account) {
        self.visit.account(match account {
            Account::Open(mut open) => {
                open.iter_mut().for_each(|span| span.begin_ns = self.drift.at(span.begin_ns));
                Account::Open(open)
            }
            other => other,
        });
    }
}
