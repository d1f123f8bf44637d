//! Where records go: the stream and iterations.csv. A disk that fails stops the recording, never the training.

use std::fmt::Display;
use std::sync::Arc;

use dflash_timeline::SegmentWriter;
use dflash_timeline::record::{
    Anchor, Counter, CounterId, Flow, Iteration, Lane, LaneId, Mark, NameId, OpenSpan, Sample, Span, StackSample,
    Totals,
};

use super::event::Stack;
use super::hub::{Hub, LaneShared, lock};
use super::rows::{Rows, StageSums};
use super::site;

/// Both files of a rank; each is closed by its first failure.
#[derive(Debug)]
pub(crate) struct Output {
    hub: Arc<Hub>,
    rank: u32,
    stream: Option<SegmentWriter>,
    rows: Option<Rows>,
    /// Ids of names by site; `None`: not used yet.
    names: Vec<Option<NameId>>,
    /// What the stream held when it failed.
    written: u64,
}

impl Output {
    pub(crate) fn new(hub: Arc<Hub>, stream: SegmentWriter, rows: Rows, rank: u32) -> Self {
        Self { hub, rank, stream: Some(stream), rows: Some(rows), names: Vec::new(), written: 0 }
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

    pub(crate) fn lane(&mut self, name: &str, device: &str) -> LaneId {
        let lane = Lane { name: name.to_owned(), device: device.to_owned(), rank: self.rank };
        self.stream.as_mut().map_or(LaneId(0), |stream| stream.lane(&lane))
    }

    pub(crate) fn span(&mut self, span: &Span) {
        self.write(|stream| stream.span(span));
    }

    pub(crate) fn iteration(&mut self, lane: &LaneShared, iteration: &Iteration, sums: &mut StageSums) {
        self.write(|stream| stream.iteration(iteration));
        self.write_rows(|rows| rows.write(lane, iteration, sums));
    }

    pub(crate) fn flow(&mut self, flow: &Flow) {
        self.write(|stream| stream.flow(flow));
    }

    pub(crate) fn sample(&mut self, name: &str, unit: &str, time_ns: i64, value: f64) {
        let series = Counter { name: name.to_owned(), unit: unit.to_owned(), rank: self.rank };
        self.write(|stream| {
            let counter: CounterId = stream.counter(&series);
            stream.sample(&Sample { counter, time_ns, value })
        });
    }

    pub(crate) fn stack(&mut self, stack: &Stack) {
        let lane = stack.lane.as_ref().map(|(name, device)| self.lane(name, device));
        let spans = stack.spans.iter().map(|site| self.name(*site)).collect();
        let Stack { time_ns, tid, iteration, .. } = *stack;
        self.write(|stream| {
            let frames = stack.frames.iter().map(|frame| stream.name(frame)).collect();
            let thread = stream.name(&stack.thread);
            stream.stack(&StackSample { time_ns, tid, thread, lane, iteration, spans, frames })
        });
    }

    pub(crate) fn mark(&mut self, mark: &Mark) {
        self.write(|stream| stream.mark(mark));
    }

    pub(crate) fn anchor(&mut self, anchor: &Anchor) {
        self.write(|stream| {
            stream.anchor(anchor);
            Ok(())
        });
    }

    /// Bytes in the stream.
    pub(crate) fn bytes(&self) -> u64 {
        self.stream.as_ref().map_or(0, SegmentWriter::bytes)
    }

    /// Hands what has gathered to the system.
    pub(crate) fn flush(&mut self, open: &[OpenSpan], totals: Totals) {
        self.write(|stream| stream.flush(open, totals));
        self.write_rows(|rows| rows.csv.flush());
    }

    /// Writes the END block. What was emitted and is not in the stream counts as dropped, whatever the reason.
    pub(crate) fn end(mut self, open: &[OpenSpan], totals: Totals) -> Totals {
        self.write_rows(|rows| rows.csv.flush());
        let Some(stream) = self.stream.take() else { return settled(totals, self.written) };
        let written = stream.written();
        let settled_totals = settled(totals, stream.gathered());
        match stream.end(open, settled_totals) {
            Ok(totals) => totals,
            Err(error) => {
                self.trouble("the timeline", &error);
                settled(totals, written)
            }
        }
    }

    fn write(&mut self, write: impl FnOnce(&mut SegmentWriter) -> dflash_timeline::Result<()>) {
        let Some(stream) = &mut self.stream else { return };
        if let Err(error) = write(stream) {
            self.written = stream.written();
            self.stream = None;
            self.trouble("the timeline", &error);
        }
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

fn settled(totals: Totals, written: u64) -> Totals {
    Totals { written, dropped: totals.emitted.saturating_sub(written), ..totals }
}
