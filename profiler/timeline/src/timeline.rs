//! A run's timeline in memory: what every reader works on.

use std::collections::BTreeMap;

use crate::clock::Shift;
use crate::record::{
    Anchor, Counter, DeviceAnchor, Expired, Flow, Iteration, Lane, LaneId, LaneTotals, Mark, NameId, OpenSpan, Sample,
    Span, StackSample, Stream, StreamId, Totals,
};

/// Everything that was read of a run, of all ranks and segments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timeline {
    /// Names of spans, by [`NameId`].
    pub names: Vec<String>,
    /// Lanes, by [`LaneId`].
    pub lanes: Vec<Lane>,
    /// Counters, by [`CounterId`](crate::record::CounterId).
    pub counters: Vec<Counter>,
    /// Streams that spans with a device time ran on, by [`StreamId`].
    pub streams: Vec<Stream>,
    /// Spans, sorted by lane, begin, depth.
    pub spans: Vec<Span>,
    /// Iterations, sorted by lane, begin.
    pub iterations: Vec<Iteration>,
    /// Counter samples, sorted by time.
    pub samples: Vec<Sample>,
    /// Hand-offs, sorted by time.
    pub flows: Vec<Flow>,
    /// Marks, sorted by time.
    pub marks: Vec<Mark>,
    /// Clock anchors, sorted by time.
    pub anchors: Vec<Anchor>,
    /// Clock anchors of devices, sorted by time.
    pub device_anchors: Vec<DeviceAnchor>,
    /// Sampled stacks, sorted by time.
    pub stacks: Vec<StackSample>,
    /// What became of each lane's records, as far as the stream says.
    pub lane_totals: Vec<LaneTotals>,
    /// Spans that were open when the last block was written.
    pub open: Vec<OpenSpan>,
    /// Totals of the END block; of a live or torn file, those of the last block.
    pub totals: Totals,
    /// What `keep` has deleted, of all ranks and attempts: written once, gone on purpose.
    pub expired: Expired,
    /// If `keep` has deleted segments: from when on there is detail of every rank, monotonic nanoseconds.
    pub detail_from_ns: Option<i64>,
    /// Ranks of another host than rank 0's, and what was added to their times to have them on rank 0's monotonic clock: of
    /// each the last attempt's.
    pub shifts: BTreeMap<u32, Shift>,
    /// Whether the stream is whole.
    pub health: Health,
}

/// Whether a stream is whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Every rank's stream ends with an END block.
    pub ended: bool,
    /// Blocks that were skipped because they were damaged.
    pub bad_blocks: u64,
    /// Bytes that were skipped.
    pub skipped_bytes: u64,
    /// One line per damage, with file and offset.
    pub problems: Vec<String>,
}

impl Timeline {
    /// The text of a name.
    #[must_use]
    pub fn name(&self, id: NameId) -> &str {
        self.names.get(id.0 as usize).map_or("?", String::as_str)
    }

    /// A lane; unknown ids (of a damaged file) give `None`.
    #[must_use]
    pub fn lane(&self, id: LaneId) -> Option<&Lane> {
        self.lanes.get(id.0 as usize)
    }

    /// A stream; unknown ids (of a damaged file) give `None`.
    #[must_use]
    pub fn stream(&self, id: StreamId) -> Option<&Stream> {
        self.streams.get(id.0 as usize)
    }

    /// First begin and last end of everything on a lane, monotonic nanoseconds; `None` if nothing was recorded.
    #[must_use]
    pub fn extent(&self) -> Option<(i64, i64)> {
        let spans = self.spans.iter().map(|s| (s.begin_ns, s.duration_ns));
        let iterations = self.iterations.iter().map(|i| (i.begin_ns, i.duration_ns));
        spans.chain(iterations).fold(None, |extent, (begin, duration)| {
            let end = begin.saturating_add_unsigned(duration);
            Some(extent.map_or((begin, end), |(first, last): (i64, i64)| (first.min(begin), last.max(end))))
        })
    }
}
