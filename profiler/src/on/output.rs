//! Where records go: the stream and iterations.csv. A disk that fails stops the recording, never the training.

use std::fmt::Display;
use std::sync::Arc;

use dflash_timeline::SegmentWriter;
use dflash_timeline::record::{
    Anchor, Awaited, Counter, CounterId, DeviceAnchor, Flow, Iteration, Lane, LaneId, LaterTime, Mark, NameId,
    OpenSpan, Sample, Severity, Span, StackSample, Stream, StreamId, Totals,
};

use super::account::{Accounts, Source};
use super::event::Stack;
use super::hub::{Hub, LaneShared, lock};
use super::rows::{Rows, StageSums};
use super::site;
use crate::StreamKey;

/// Both files of a rank; each is closed by its first failure.
#[derive(Debug)]
pub(crate) struct Output {
    hub: Arc<Hub>,
    rank: u32,
    stream: Option<SegmentWriter>,
    rows: Option<Rows>,
    /// Ids of names by site; `None`: not used yet.
    names: Vec<Option<NameId>>,
    /// Ids of the streams that were timed: a few.
    streams: Vec<(StreamKey, StreamId)>,
    pub accounts: Accounts,
    /// Samples and marks that the writer's thread made.
    pub own: u64,
}

impl Output {
    pub(crate) fn new(hub: Arc<Hub>, stream: SegmentWriter, rows: Rows, rank: u32) -> Self {
        let (accounts, names, streams) = (Accounts::default(), Vec::new(), Vec::new());
        Self { hub, rank, stream: Some(stream), rows: Some(rows), names, streams, accounts, own: 0 }
    }

    pub(crate) fn name(&mut self, site: u32) -> NameId {
        let place = site as usize;
        if place >= self.names.len() {
            self.names.resize(place + 1, None);
        }
        if let Some(id) = self.names[place] {
            return id;
        }
        let id = self.stream.as_mut().map_or(NameId(0), |stream| stream.name(site::name(site)));
        self.names[place] = Some(id);
        id
    }

    /// A lane's number in the stream, and its account.
    pub(crate) fn lane(&mut self, name: &str, device: &str) -> (LaneId, Source) {
        let lane = Lane { name: name.to_owned(), device: device.to_owned(), rank: self.rank };
        let id = self.stream.as_mut().map_or(LaneId(0), |stream| stream.lane(&lane));
        (id, self.accounts.lane(id, name, device))
    }

    /// A stream's number in the recording.
    pub(crate) fn device_stream(&mut self, key: StreamKey) -> StreamId {
        if let Some((_, id)) = self.streams.iter().find(|(known, _)| *known == key) {
            return *id;
        }
        let stream = Stream { device: self.hub.device.name(key.device), number: key.stream, rank: self.rank };
        let id = self.stream.as_mut().map_or(StreamId(0), |writer| writer.stream(&stream));
        self.streams.push((key, id));
        id
    }

    pub(crate) fn span(&mut self, source: Source, span: &Span) {
        self.record(source, |stream| stream.span(span));
    }

    pub(crate) fn iteration(&mut self, source: Source, iteration: &Iteration) {
        self.record(source, |stream| stream.iteration(iteration));
    }

    /// Adds the device times of spans that were written without.
    pub(crate) fn later(&mut self, lane: LaneId, times: &[LaterTime]) {
        if !times.is_empty() {
            self.write(|stream| stream.later(lane, times));
        }
    }

    /// Says from where on the spans of a lane may get such a time.
    pub(crate) fn awaited(&mut self, lane: LaneId, from_ns: Option<i64>) {
        self.write(|stream| {
            stream.awaited(&Awaited { lane, from_ns });
            Ok(())
        });
    }

    /// Appends the rows of a finished iteration to iterations.csv; a bare one has only its total.
    pub(crate) fn rows(&mut self, lane: &LaneShared, iteration: &Iteration, sums: &mut StageSums, bare: bool) {
        self.write_rows(|rows| rows.write(lane, iteration, sums, bare));
    }

    pub(crate) fn flow(&mut self, source: Source, flow: &Flow) {
        self.record(source, |stream| stream.flow(flow));
    }

    pub(crate) fn sample(&mut self, source: Source, name: &str, unit: &str, time_ns: i64, value: f64) {
        let series = Counter { name: name.to_owned(), unit: unit.to_owned(), rank: self.rank };
        self.record(source, |stream| {
            let counter: CounterId = stream.counter(&series);
            stream.sample(&Sample { counter, time_ns, value })
        });
    }

    pub(crate) fn stack(&mut self, stack: &Stack) {
        let lane = stack.lane.as_ref().map(|(name, device)| self.lane(name, device).0);
        let spans = stack.spans.iter().map(|site| self.name(*site)).collect();
        let Stack { time_ns, tid, iteration, .. } = *stack;
        self.record(Source::NOBODY, |stream| {
            let frames = stack.frames.iter().map(|frame| stream.name(frame)).collect();
            let thread = stream.name(&stack.thread);
            stream.stack(&StackSample { time_ns, tid, thread, lane, iteration, spans, frames })
        });
    }

    pub(crate) fn mark(&mut self, mark: &Mark) {
        self.record(Source::NOBODY, |stream| stream.mark(mark));
    }

    /// A reading of the profiler's own.
    pub(crate) fn own_sample(&mut self, name: &str, unit: &str, time_ns: i64, value: f64) {
        self.own += 1;
        self.sample(Source::NOBODY, name, unit, time_ns, value);
    }

    /// Something that the profiler has to say.
    pub(crate) fn warn(&mut self, text: String) {
        self.own += 1;
        self.mark(&Mark { time_ns: dflash_sys::monotonic_ns(), severity: Severity::Warning, text });
    }

    pub(crate) fn anchor(&mut self, anchor: &Anchor) {
        self.write(|stream| {
            stream.anchor(anchor);
            Ok(())
        });
    }

    /// Notes how a device's clock stands to the host's.
    pub(crate) fn device_anchor(&mut self, device: &str, device_ns: i64, host_ns: i64, uncertainty_ns: u64) {
        self.write(|stream| {
            let device = stream.name(device);
            stream.device_anchor(&DeviceAnchor { device, device_ns, host_ns, uncertainty_ns });
            Ok(())
        });
    }

    /// Notes the accounts of all lanes so far.
    pub(crate) fn lane_totals(&mut self) {
        if let Some(stream) = &mut self.stream {
            self.accounts.lanes().for_each(|totals| stream.lane_totals(&totals));
        }
    }

    /// Bytes in the stream.
    pub(crate) fn bytes(&self) -> u64 {
        self.stream.as_ref().map_or(0, SegmentWriter::bytes)
    }

    /// Number of the segment that is being written.
    pub(crate) fn segment(&self) -> u32 {
        self.stream.as_ref().map_or(0, SegmentWriter::segment)
    }

    /// CPU time of the thread that syncs the stream.
    pub(crate) fn sync_cpu_ns(&self) -> u64 {
        self.stream.as_ref().map_or(0, |stream| stream.sync_stats().cpu_ns)
    }

    /// CPU time of the thread that packs parts of iterations.csv.
    pub(crate) fn pack_cpu_ns(&self) -> u64 {
        self.rows.as_ref().map_or(0, |rows| rows.csv.pack_cpu_ns())
    }

    /// Records in the stream.
    pub(crate) fn written(&self) -> u64 {
        self.stream.as_ref().map_or_else(|| self.accounts.totals().written, SegmentWriter::written)
    }

    /// Hands what has gathered to the system.
    pub(crate) fn flush(&mut self, open: &[OpenSpan], totals: Totals) {
        self.write(|stream| stream.flush(open, totals));
        self.write_rows(|rows| rows.csv.flush());
    }

    /// Writes the END block. Whatever the makers say they have made and is neither written nor dropped came too late.
    pub(crate) fn end(mut self, open: &[OpenSpan], totals: Totals) -> (Totals, Accounts) {
        self.write_rows(|rows| rows.csv.flush());
        if let Some(mut stream) = self.stream.take() {
            self.accounts.lanes_at_end().iter().for_each(|lane| stream.lane_totals(lane));
            let emitted = self.accounts.totals().emitted;
            let at_end = Totals { emitted, dropped: emitted.saturating_sub(stream.gathered()), ..totals };
            match stream.end(open, at_end) {
                Ok(_) => {}
                Err(error) => {
                    self.accounts.fail();
                    self.trouble("the timeline", &error);
                }
            }
        }
        self.accounts.close();
        let Totals { emitted, written, dropped, .. } = self.accounts.totals();
        (Totals { emitted, written, dropped, ..totals }, self.accounts)
    }

    /// Writes a record of somebody's, and notes on his account what became of it.
    fn record(&mut self, source: Source, write: impl FnOnce(&mut SegmentWriter) -> dflash_timeline::Result<()>) {
        let Some(stream) = &mut self.stream else { return self.accounts.refused(source) };
        match write(stream) {
            Ok(()) => self.accounts.taken(source, stream.written()),
            Err(error) => {
                self.accounts.refused(source);
                self.failed(&error);
            }
        }
    }

    /// Writes what is nobody's record.
    fn write(&mut self, write: impl FnOnce(&mut SegmentWriter) -> dflash_timeline::Result<()>) {
        let Some(stream) = &mut self.stream else { return };
        match write(stream) {
            Ok(()) => self.accounts.settle(stream.written()),
            Err(error) => self.failed(&error),
        }
    }

    #[cold]
    fn failed(&mut self, error: &dflash_timeline::Error) {
        if let Some(stream) = self.stream.take() {
            self.accounts.settle(stream.written());
        }
        self.accounts.fail();
        self.trouble("the timeline", error);
    }

    fn write_rows(&mut self, write: impl FnOnce(&mut Rows) -> dflash_timeline::Result<()>) {
        let Some(rows) = &mut self.rows else { return };
        if let Err(error) = write(rows) {
            self.rows = None;
            self.trouble("iterations.csv", &error);
        }
    }

    /// Says once per file why it ends early.
    fn trouble(&self, what: &str, error: &dyn Display) {
        let text = format!("{what} is no longer written: {error}");
        let mut trouble = lock(&self.hub.trouble);
        *trouble = Some(trouble.take().map_or(text.clone(), |before| format!("{before}; {text}")));
    }
}
