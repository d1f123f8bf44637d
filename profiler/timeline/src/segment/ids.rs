//! The ids of a block's texts: each is introduced once a block, those that most blocks use at its begin.

use super::{Local, SegmentWriter};
use crate::encode::Kept;
use crate::record::{CounterId, LaneId, NameId, StreamId};
use crate::regular::Begin;

impl SegmentWriter {
    pub(super) fn begin_block(&mut self) {
        let Local { names, lanes, counters, streams } = &mut self.local;
        let begin = self.regular.next([names.used(), lanes.used(), counters.used(), streams.used()]);
        let kept = if begin == Begin::Kept { self.regular.kept } else { Kept::default() };
        self.block.clear(&kept);
        [names, lanes, counters, streams].into_iter().zip(kept.texts).for_each(|(ids, kept)| ids.clear(kept));
        if begin == Begin::Changed {
            let [names, lanes, counters, streams] = std::mem::take(&mut self.regular.texts);
            names.iter().for_each(|id| _ = self.local_name(NameId(*id)));
            lanes.iter().for_each(|id| _ = self.local_lane(LaneId(*id)));
            counters.iter().for_each(|id| _ = self.local_counter(CounterId(*id)));
            streams.iter().for_each(|id| _ = self.local_stream(StreamId(*id)));
            self.regular.kept = self.block.keep([names.len(), lanes.len(), counters.len(), streams.len()]);
            self.regular.texts = [names, lanes, counters, streams];
        }
    }

    #[inline]
    pub(super) fn local_name(&mut self, name: NameId) -> NameId {
        NameId(self.local.names.get(name.0).unwrap_or_else(|| {
            self.block.name(name.0, self.texts.names.get(name.0).map_or("?", String::as_str));
            self.local.names.introduced(name.0)
        }))
    }

    #[inline]
    pub(super) fn local_lane(&mut self, lane: LaneId) -> LaneId {
        LaneId(self.local.lanes.get(lane.0).unwrap_or_else(|| {
            let known = self.texts.lanes.get(lane.0).map(|lane| ([lane.name.as_str(), &lane.device], lane.rank));
            let (texts, rank) = known.unwrap_or((["?"; 2], self.rank));
            self.block.lane(lane.0, texts, rank);
            self.local.lanes.introduced(lane.0)
        }))
    }

    #[inline]
    pub(super) fn local_counter(&mut self, counter: CounterId) -> CounterId {
        CounterId(self.local.counters.get(counter.0).unwrap_or_else(|| {
            let known =
                self.texts.counters.get(counter.0).map(|found| ([found.name.as_str(), &found.unit], found.rank));
            let (texts, rank) = known.unwrap_or((["?", ""], self.rank));
            self.block.counter(counter.0, texts, rank);
            self.local.counters.introduced(counter.0)
        }))
    }

    #[inline]
    pub(super) fn local_stream(&mut self, stream: StreamId) -> StreamId {
        StreamId(self.local.streams.get(stream.0).unwrap_or_else(|| {
            let known = self.texts.streams.get(stream.0).map(|found| (found.device.as_str(), found.number, found.rank));
            let (device, number, rank) = known.unwrap_or(("?", 0, self.rank));
            self.block.stream(stream.0, device, number, rank);
            self.local.streams.introduced(stream.0)
        }))
    }
}
