//! Which stages have device times, and on which streams.

use dflash_timeline::record::{LaneId, Span, StreamId};

/// Streams, each once; `None` of recordings that do not say which.
pub(crate) type Streams = Vec<Option<StreamId>>;

/// Which stages have a device time somewhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timed {
    /// By lane, then by name: the streams of the stage.
    stages: Vec<Vec<Streams>>,
    /// By lane: the streams of all its stages.
    lanes: Vec<Streams>,
}

impl Timed {
    /// Takes note of a span.
    #[inline]
    pub(crate) fn learn(&mut self, span: &Span) {
        if let Some(device) = span.device.filter(|_| span.depth == 0)
            && !self.has_on(span, device.stream)
        {
            self.note(span, device.stream);
        }
    }

    #[cold]
    fn note(&mut self, span: &Span, stream: Option<StreamId>) {
        let (lane, name) = (span.lane.0 as usize, span.name.0 as usize);
        let lanes = self.stages.len().max(lane + 1);
        self.stages.resize_with(lanes, Vec::new);
        self.lanes.resize_with(lanes, Vec::new);
        let names = self.stages[lane].len().max(name + 1);
        self.stages[lane].resize_with(names, Vec::new);
        self.stages[lane][name].push(stream);
        if !self.lanes[lane].contains(&stream) {
            self.lanes[lane].push(stream);
            self.lanes[lane].sort_unstable();
        }
    }

    /// Takes over what another has learnt of other lanes.
    pub(crate) fn join(&mut self, other: Self) {
        let lanes = self.stages.len().max(other.stages.len());
        self.stages.resize_with(lanes, Vec::new);
        self.lanes.resize_with(lanes, Vec::new);
        for (lane, (stages, streams)) in other.stages.into_iter().zip(other.lanes).enumerate() {
            if !streams.is_empty() {
                (self.stages[lane], self.lanes[lane]) = (stages, streams);
            }
        }
    }

    /// Whether the span's stage has a device time on this stream.
    #[inline]
    pub(crate) fn has_on(&self, span: &Span, stream: Option<StreamId>) -> bool {
        let names = self.stages.get(span.lane.0 as usize);
        names.and_then(|names| names.get(span.name.0 as usize)).is_some_and(|streams| streams.contains(&stream))
    }

    /// The streams on which a lane has device times, in order; none, if it has none.
    pub(crate) fn streams(&self, LaneId(lane): LaneId) -> &[Option<StreamId>] {
        self.lanes.get(lane as usize).map_or(&[], Vec::as_slice)
    }

    /// Whether nothing has a device time.
    pub(crate) fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }
}
