//! Writing a rank's timing stream: records into blocks, blocks into segments. The format: `format.rs`, `encode.rs`.

mod block;
mod ids;
mod later;

use crate::encode::Encoder;
use crate::error::Result;
use crate::files::{Files, StreamOptions};
use crate::intern::{Ids, Interner};
use crate::record::{
    Anchor, Counter, CounterId, DeviceAnchor, Flow, Iteration, Lane, LaneId, LaneTotals, Mark, NameId, OpenSpan,
    Sample, Span, StackSample, Stream, StreamId, Totals,
};
use crate::regular::Regular;
use crate::run_dir::RunDir;
use crate::sync::SyncStats;

/// Payload bytes after which a block is written.
const BLOCK_BYTES: usize = 64 << 10;

/// Writes the stream of one rank. Records gather in a block; [`flush`](Self::flush) writes it with one write, and so
/// does a block that is full. Ids are the writer's: introduce a text once with [`name`](Self::name),
/// [`lane`](Self::lane), [`counter`](Self::counter) or [`stream`](Self::stream), and use the id in records.
#[derive(Debug)]
pub struct SegmentWriter {
    files: Files,
    rank: u32,
    sequence: u32,
    texts: Texts,
    block: Encoder,
    local: Local,
    regular: Regular,
    /// Dates the attempt; repeated in each segment, since the first one may be deleted.
    first_anchor: Option<Anchor>,
    /// Records of the lanes that stand in written blocks, and in the block in the making.
    written: u64,
    pending: u64,
}

/// Every text of the stream, by the writer's ids.
#[derive(Debug, Default)]
struct Texts {
    names: Interner<String>,
    lanes: Interner<Lane>,
    counters: Interner<Counter>,
    streams: Interner<Stream>,
}

/// The block's ids of those texts.
#[derive(Debug, Default)]
struct Local {
    names: Ids,
    lanes: Ids,
    counters: Ids,
    streams: Ids,
}

impl SegmentWriter {
    /// Begins a new segment of `rank` in a run; segments that are there stay as they are.
    ///
    /// After `segment_bytes` the stream goes on in the next segment. Everything is kept, and synced at the end alone.
    pub fn create(run: &RunDir, rank: u32, segment_bytes: u64) -> Result<Self> {
        let options = StreamOptions { segment_bytes, keep_bytes: None, sync_every: None };
        Self::with_options(run, rank, &options)
    }

    /// Begins a new segment of `rank` in a run; segments that are there stay as they are, whatever `keep_bytes` says.
    ///
    /// # Errors
    /// If the segment cannot be created; the error names it.
    pub fn with_options(run: &RunDir, rank: u32, options: &StreamOptions) -> Result<Self> {
        Ok(Self {
            files: Files::create(run.timeline_dir(), rank, options)?,
            rank,
            sequence: 0,
            texts: Texts::default(),
            block: Encoder::of_rank(rank),
            local: Local::default(),
            regular: Regular::default(),
            first_anchor: None,
            written: 0,
            pending: 0,
        })
    }

    /// The id of a span's name.
    pub fn name(&mut self, name: &str) -> NameId {
        NameId(self.texts.names.id(name))
    }

    /// The id of a lane.
    pub fn lane(&mut self, lane: &Lane) -> LaneId {
        LaneId(self.texts.lanes.id(lane))
    }

    /// The id of a counter.
    pub fn counter(&mut self, counter: &Counter) -> CounterId {
        CounterId(self.texts.counters.id(counter))
    }

    /// The id of a stream.
    pub fn stream(&mut self, stream: &Stream) -> StreamId {
        StreamId(self.texts.streams.id(stream))
    }

    /// Adds a finished span.
    #[inline]
    pub fn span(&mut self, span: &Span) -> Result<()> {
        // Of a name that has not been introduced the block knows no shapes.
        let name = NameId(self.local.names.get_or_none(span.name.0));
        if !self.block.usual_span(span, name) {
            self.other_span(span);
        }
        self.added()
    }

    #[cold]
    fn other_span(&mut self, span: &Span) {
        let (name, lane) = (self.local_name(span.name), self.local_lane(span.lane));
        let stream = span.device.and_then(|device| device.stream).map(|stream| self.local_stream(stream));
        self.block.other_span(span, name, lane, stream);
    }

    /// Adds a finished iteration.
    pub fn iteration(&mut self, iteration: &Iteration) -> Result<()> {
        let lane = self.local_lane(iteration.lane);
        self.block.iteration(iteration, lane);
        self.added()
    }

    /// Adds a reading of a counter.
    #[inline]
    pub fn sample(&mut self, sample: &Sample) -> Result<()> {
        let counter = self.local_counter(sample.counter);
        self.block.sample(sample, counter);
        self.added()
    }

    /// Adds one end of a hand-off.
    pub fn flow(&mut self, flow: &Flow) -> Result<()> {
        let lane = self.local_lane(flow.lane);
        self.block.flow(flow, lane);
        self.added()
    }

    /// Adds a mark.
    pub fn mark(&mut self, mark: &Mark) -> Result<()> {
        self.block.mark(mark);
        self.added()
    }

    /// Adds a clock anchor. It is nobody's record, and not in the totals.
    pub fn anchor(&mut self, anchor: &Anchor) {
        self.first_anchor.get_or_insert(*anchor);
        self.block.anchor(anchor);
    }

    /// Adds a clock anchor of a device; nobody's record either.
    pub fn device_anchor(&mut self, anchor: &DeviceAnchor) {
        let device = self.local_name(anchor.device);
        self.block.device_anchor(&DeviceAnchor { device, ..*anchor });
    }

    /// Adds a sampled stack. It is a record, and no lane's own: the sampler made it.
    pub fn stack(&mut self, stack: &StackSample) -> Result<()> {
        let mut names = |ids: &[NameId]| ids.iter().map(|id| self.local_name(*id)).collect();
        let (spans, frames): (Vec<NameId>, Vec<NameId>) = (names(&stack.spans), names(&stack.frames));
        let (thread, lane) = (self.local_name(stack.thread), stack.lane.map(|lane| self.local_lane(lane)));
        let StackSample { time_ns, tid, iteration, .. } = *stack;
        self.block.stack(&StackSample { time_ns, tid, thread, lane, iteration, spans, frames });
        self.added()
    }

    /// Says what became of a lane's spans, iterations and flow ends so far; the last word counts. Say it just before
    /// [`flush`](Self::flush) and [`end`](Self::end), and only of lanes for which it has changed.
    pub fn lane_totals(&mut self, totals: &LaneTotals) {
        let lane = self.local_lane(totals.lane);
        self.block.lane_totals(&LaneTotals { lane, ..*totals });
    }

    /// Writes the block, with the spans that are open now and the totals so far (`written` is filled in here).
    ///
    /// # Errors
    /// If the system refuses the block; it is lost then, and the error names the file. The stream may be given up, or
    /// tried again with the next block.
    pub fn flush(&mut self, open: &[OpenSpan], totals: Totals) -> Result<()> {
        self.account(open, totals);
        self.write_block(false)
    }

    /// Writes the END block. Returns the totals in it.
    pub fn end(mut self, open: &[OpenSpan], totals: Totals) -> Result<Totals> {
        let totals = self.account(open, totals);
        self.write_block(true)?;
        self.files.sync()?;
        Ok(totals)
    }

    /// Records in written blocks, also in those that `keep` has deleted since; anchors, open spans and totals do not
    /// count.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Records in written blocks and in the one in the making.
    #[must_use]
    pub fn gathered(&self) -> u64 {
        self.written + self.pending
    }

    /// Bytes written, in all segments, also in deleted ones.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files.bytes
    }

    /// Number of the segment that is being written.
    #[must_use]
    pub fn segment(&self) -> u32 {
        self.files.number
    }

    /// What the thread `dflash-sync` has done and cost; nothing if there is none.
    #[must_use]
    pub fn sync_stats(&self) -> SyncStats {
        self.files.sync_stats()
    }

    #[inline]
    fn added(&mut self) -> Result<()> {
        self.pending += 1;
        self.write_if_full()
    }

    #[inline]
    fn write_if_full(&mut self) -> Result<()> {
        if self.block.length() < BLOCK_BYTES { Ok(()) } else { self.write_block(false) }
    }
}
