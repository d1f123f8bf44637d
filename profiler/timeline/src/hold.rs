//! Between a stream and a visitor: spans whose device time comes later wait for it, and the lane's order stays.

use std::collections::{BTreeMap, VecDeque};

use crate::format::Header;
use crate::record::{
    Anchor, Awaited, DeviceAnchor, Flow, Iteration, LaneId, LaterTime, Mark, Sample, Span, StackSample,
};
use crate::visit::{Account, Visit};

/// Records of a lane that may be held back: far more than a writer lets wait. With more, the first goes on as it is, so
/// that a stream which never says the end of it cannot fill the memory.
const MOST: usize = 1 << 18;

/// What is held back.
#[derive(Debug, Default)]
pub(crate) struct Held {
    /// Rank and attempt of the last block.
    stream: Option<(u32, u8)>,
    lanes: BTreeMap<LaneId, HeldLane>,
}

#[derive(Debug)]
struct HeldLane {
    from_ns: i64,
    records: VecDeque<OfLane>,
}

#[derive(Clone, Copy, Debug)]
enum OfLane {
    Span(Span),
    Iteration(Iteration),
}

impl Held {
    /// A block begins. With another stream's, nothing more comes for what is held of this one.
    pub(crate) fn begin(&mut self, header: &Header, visit: &mut impl Visit) {
        let stream = Some((header.rank, header.stream));
        if self.stream != stream {
            self.release_all(visit);
            self.stream = stream;
        }
    }

    /// A visitor that holds back, before one that does not.
    pub(crate) fn before<'a, V>(&'a mut self, visit: &'a mut V) -> Hold<'a, V> {
        Hold { holding: !self.lanes.is_empty(), held: self, visit }
    }

    /// Hands everything over.
    pub(crate) fn release_all(&mut self, visit: &mut impl Visit) {
        for lane in std::mem::take(&mut self.lanes).into_values() {
            lane.records.into_iter().for_each(|record| record.hand_to(visit));
        }
    }
}

impl HeldLane {
    /// Hands over what waits for nothing any more.
    fn release(&mut self, visit: &mut impl Visit) {
        while let Some(first) = self.records.front() {
            let waits = matches!(first, OfLane::Span(span) if span.device.is_none() && span.begin_ns >= self.from_ns);
            if waits && self.records.len() <= MOST {
                break;
            }
            self.records.pop_front().into_iter().for_each(|record| record.hand_to(visit));
        }
    }

    fn put(&mut self, time: &LaterTime) {
        let spans = self.records.iter_mut().filter_map(|record| match record {
            OfLane::Span(span) => Some(span),
            OfLane::Iteration(_) => None,
        });
        let mut wanted = spans.filter(|span| span.begin_ns == time.begin_ns);
        wanted.next().into_iter().for_each(|span| span.device = Some(time.device));
    }
}

impl OfLane {
    fn hand_to(self, visit: &mut impl Visit) {
        match self {
            Self::Span(span) => visit.span(span),
            Self::Iteration(iteration) => visit.iteration(iteration),
        }
    }
}

/// Hands records on; what [`Awaited`] names, and what its lane has behind it, once it is whole.
#[derive(Debug)]
pub(crate) struct Hold<'a, V> {
    /// Something is or may be held back.
    holding: bool,
    held: &'a mut Held,
    visit: &'a mut V,
}

impl<V: Visit> Hold<'_, V> {
    #[cold]
    fn hold(&mut self, lane: LaneId, record: OfLane) {
        let Some(lane) = self.held.lanes.get_mut(&lane) else { return record.hand_to(self.visit) };
        lane.records.push_back(record);
        lane.release(self.visit);
    }
}

impl<V: Visit> Visit for Hold<'_, V> {
    fn wants(&self, lane: LaneId) -> bool {
        self.visit.wants(lane)
    }

    // See `Tee`.
    #[inline(always)]
    fn span(&mut self, span: Span) {
        if self.holding { self.hold(span.lane, OfLane::Span(span)) } else { self.visit.span(span) }
    }

    #[inline(always)]
    fn spans(&mut self, lane: LaneId, spans: impl Iterator<Item = Span>) {
        if self.holding {
            for span in spans {
                self.hold(lane, OfLane::Span(span));
            }
        } else {
            self.visit.spans(lane, spans);
        }
    }

    fn iteration(&mut self, iteration: Iteration) {
        if self.holding {
            self.hold(iteration.lane, OfLane::Iteration(iteration));
        } else {
            self.visit.iteration(iteration);
        }
    }

    fn later(&mut self, time: LaterTime) {
        if let Some(lane) = self.held.lanes.get_mut(&time.lane) {
            lane.put(&time);
            lane.release(self.visit);
        }
    }

    fn awaited(&mut self, Awaited { lane, from_ns }: Awaited) {
        let Some(from_ns) = from_ns else {
            let done = self.held.lanes.remove(&lane).into_iter().flat_map(|lane| lane.records);
            done.for_each(|record| record.hand_to(self.visit));
            self.holding = !self.held.lanes.is_empty();
            return;
        };
        self.holding = true;
        let held = self.held.lanes.entry(lane).or_insert(HeldLane { from_ns, records: VecDeque::new() });
        held.from_ns = from_ns;
        held.release(self.visit);
    }

    #[inline]
    fn sample(&mut self, sample: Sample) {
        self.visit.sample(sample);
    }

    fn flow(&mut self, flow: Flow) {
        self.visit.flow(flow);
    }

    fn mark(&mut self, mark: Mark) {
        self.visit.mark(mark);
    }

    fn stack(&mut self, stack: StackSample) {
        self.visit.stack(stack);
    }

    fn anchor(&mut self, anchor: Anchor) {
        self.visit.anchor(anchor);
    }

    fn device_anchor(&mut self, anchor: DeviceAnchor) {
        self.visit.device_anchor(anchor);
    }

    fn account(&mut self, account: Account) {
        self.visit.account(account);
    }
}
