//! Writing a rank's timing stream: records into blocks, blocks into segments. The format: `format.rs`, `encode.rs`.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use crate::encode::Encoder;
use crate::error::{Error, Result};
use crate::format::{self, Header};
use crate::intern::{Ids, Interner};
use crate::record::{
    Anchor, Counter, CounterId, DeviceAnchor, Flow, Iteration, Lane, LaneId, LaneTotals, Mark, NameId, OpenSpan,
    Sample, Span, StackSample, Totals,
};
use crate::run_dir::RunDir;

/// Payload bytes after which a block is written.
const BLOCK_BYTES: usize = 64 << 10;

/// Writes the stream of one rank. Records gather in a block; [`flush`](Self::flush) writes it with one write, and so
/// does a block that is full. Ids are the writer's: introduce a text once with [`name`](Self::name),
/// [`lane`](Self::lane) or [`counter`](Self::counter), and use the id in records.
#[derive(Debug)]
pub struct SegmentWriter {
    directory: PathBuf,
    rank: u32,
    segment_bytes: u64,
    segment: u32,
    file: File,
    path: PathBuf,
    /// Bytes in this segment, and in all.
    in_segment: u64,
    in_all: u64,
    sequence: u32,
    texts: Texts,
    block: Encoder,
    local: Local,
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
}

/// The block's ids of those texts; `None`: not introduced in this block.
#[derive(Debug, Default)]
struct Local {
    names: Ids,
    lanes: Ids,
    counters: Ids,
}

impl SegmentWriter {
    /// Begins a new segment of `rank` in a run; segments that are there stay as they are.
    ///
    /// After `segment_bytes` the stream goes on in the next segment.
    pub fn create(run: &RunDir, rank: u32, segment_bytes: u64) -> Result<Self> {
        let directory = run.timeline_dir();
        fs::create_dir_all(&directory).map_err(Error::io(&directory, "create it"))?;
        let (segment, path, file) = next_segment(&directory, rank, 1)?;
        Ok(Self {
            directory,
            rank,
            segment_bytes,
            segment,
            file,
            path,
            in_segment: 0,
            in_all: 0,
            sequence: 0,
            texts: Texts::default(),
            block: Encoder::default(),
            local: Local::default(),
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

    /// Adds a finished span.
    pub fn span(&mut self, span: &Span) -> Result<()> {
        let (name, lane) = (self.local_name(span.name), self.local_lane(span.lane));
        self.block.span(&Span { name, lane, ..*span });
        self.added()
    }

    /// Adds a finished iteration.
    pub fn iteration(&mut self, iteration: &Iteration) -> Result<()> {
        let lane = self.local_lane(iteration.lane);
        self.block.iteration(&Iteration { lane, ..*iteration });
        self.added()
    }

    /// Adds a reading of a counter.
    pub fn sample(&mut self, sample: &Sample) -> Result<()> {
        let (block, texts) = (&mut self.block, &self.texts.counters);
        let introduce = |id| block.counter(texts.get(id));
        let counter = CounterId(self.local.counters.id(sample.counter.0, introduce));
        self.block.sample(&Sample { counter, ..*sample });
        self.added()
    }

    /// Adds one end of a hand-off.
    pub fn flow(&mut self, flow: &Flow) -> Result<()> {
        let lane = self.local_lane(flow.lane);
        self.block.flow(&Flow { lane, ..*flow });
        self.added()
    }

    /// Adds a mark.
    pub fn mark(&mut self, mark: &Mark) -> Result<()> {
        self.block.mark(mark);
        self.added()
    }

    /// Adds a clock anchor. It is nobody's record, and not in the totals.
    pub fn anchor(&mut self, anchor: &Anchor) {
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
    pub fn flush(&mut self, open: &[OpenSpan], totals: Totals) -> Result<()> {
        self.account(open, totals);
        self.write_block(false)
    }

    /// Writes the END block. Returns the totals in it.
    pub fn end(mut self, open: &[OpenSpan], totals: Totals) -> Result<Totals> {
        let totals = self.account(open, totals);
        self.write_block(true)?;
        self.file.sync_all().map_err(Error::io(&self.path, "write it"))?;
        Ok(totals)
    }

    /// Records in written blocks; anchors, open spans and totals do not count.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Records in written blocks and in the one in the making.
    #[must_use]
    pub fn gathered(&self) -> u64 {
        self.written + self.pending
    }

    /// Bytes written, in all segments.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.in_all
    }

    fn local_name(&mut self, name: NameId) -> NameId {
        let (block, texts) = (&mut self.block, &self.texts.names);
        NameId(self.local.names.id(name.0, |id| block.name(texts.get(id))))
    }

    fn local_lane(&mut self, lane: LaneId) -> LaneId {
        let (block, texts) = (&mut self.block, &self.texts.lanes);
        LaneId(self.local.lanes.id(lane.0, |id| block.lane(texts.get(id))))
    }

    fn added(&mut self) -> Result<()> {
        self.pending += 1;
        if self.block.bytes.len() >= BLOCK_BYTES { self.write_block(false) } else { Ok(()) }
    }

    fn account(&mut self, open: &[OpenSpan], totals: Totals) -> Totals {
        let local: Vec<OpenSpan> = open
            .iter()
            .map(|o| OpenSpan { name: self.local_name(o.name), lane: self.local_lane(o.lane), ..*o })
            .collect();
        self.block.open(&local);
        let totals = Totals { written: self.written + self.pending, ..totals };
        self.block.totals(&totals);
        totals
    }

    fn write_block(&mut self, end: bool) -> Result<()> {
        let block = std::mem::take(&mut self.block);
        self.local = Local::default();
        let pending = std::mem::take(&mut self.pending);
        let length = u32::try_from(block.bytes.len()).unwrap_or(u32::MAX);
        let (first_ns, last_ns) = block.extent.unwrap_or((0, 0));
        let (rank, sequence, records) = (self.rank, self.sequence, block.records);
        let header =
            Header { end, rank, sequence, length, raw_length: length, records, first_ns, last_ns, ..Header::default() };
        if self.in_segment >= self.segment_bytes {
            self.rotate()?;
        }
        let bytes = format::frame(&header, &block.bytes);
        self.file.write_all(&bytes).map_err(Error::io(&self.path, "write it"))?;
        self.sequence = self.sequence.wrapping_add(1);
        self.in_segment += bytes.len() as u64;
        self.in_all += bytes.len() as u64;
        self.written += pending;
        Ok(())
    }

    fn rotate(&mut self) -> Result<()> {
        (self.segment, self.path, self.file) = next_segment(&self.directory, self.rank, self.segment + 1)?;
        self.in_segment = 0;
        Ok(())
    }
}

/// Creates the first segment from `number` on that does not exist.
fn next_segment(directory: &Path, rank: u32, mut number: u32) -> Result<(u32, PathBuf, File)> {
    loop {
        let path = directory.join(format!("rank{rank}-{number:06}.dft"));
        match File::options().append(true).create_new(true).open(&path) {
            Ok(file) => return Ok((number, path, file)),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(e) => return Err(Error::io(&path, "create it")(e)),
        }
    }
}
