//! A block's payload back into records. The table of what lies in it stands in `encode.rs`.

use crate::encode::{KINDS, LaneState, tag};
use crate::record::{
    Anchor, Counter, CounterId, DeviceAnchor, DeviceTime, Flow, FlowEnd, Iteration, Lane, LaneId, LaneTotals, Mark,
    NameId, OpenSpan, Sample, Severity, Span, StackSample, Totals,
};
use crate::varint::Input;

/// The records of one block; ids are the block's own.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Block {
    pub names: Vec<String>,
    pub lanes: Vec<Lane>,
    pub counters: Vec<Counter>,
    pub spans: Vec<Span>,
    pub iterations: Vec<Iteration>,
    pub samples: Vec<Sample>,
    pub flows: Vec<Flow>,
    pub marks: Vec<Mark>,
    pub anchors: Vec<Anchor>,
    pub device_anchors: Vec<DeviceAnchor>,
    pub stacks: Vec<StackSample>,
    pub lane_totals: Vec<LaneTotals>,
    /// `None`: this block does not say what is open.
    pub open: Option<Vec<OpenSpan>>,
    pub totals: Option<Totals>,
}

/// Decodes a payload of `records` records; `None` if it is not exactly that.
pub(crate) fn decode(payload: &[u8], records: u32) -> Option<Block> {
    let mut decoder = Decoder { input: Input(payload), ..Decoder::default() };
    for _ in 0..records {
        decoder.record()?;
    }
    decoder.input.0.is_empty().then_some(decoder.block)
}

#[derive(Debug)]
struct Decoder<'a> {
    input: Input<'a>,
    block: Block,
    states: Vec<LaneState>,
    last_lane: Option<LaneId>,
    sample_ns: i64,
    flow: (u64, i64),
    stack_ns: i64,
}

impl Default for Decoder<'_> {
    fn default() -> Self {
        let (block, states) = (Block::default(), Vec::new());
        Self { input: Input(&[]), block, states, last_lane: None, sample_ns: 0, flow: (0, 0), stack_ns: 0 }
    }
}

impl Decoder<'_> {
    fn record(&mut self) -> Option<()> {
        let tag = self.input.byte()?;
        if tag & tag::SPAN != 0 {
            return self.span(tag);
        }
        match tag {
            tag::NAME => self.block.names.push(self.input.text()?.to_owned()),
            tag::LANE => self.lane()?,
            tag::COUNTER => self.counter()?,
            tag::ITERATION..=tag::ITERATION_LAST => self.iteration(tag)?,
            tag::SAMPLE_FLOAT | tag::SAMPLE_WHOLE => self.sample(tag)?,
            tag::FLOW_PUT => self.flow(FlowEnd::Put)?,
            tag::FLOW_TAKE => self.flow(FlowEnd::Take)?,
            tag::ANCHOR => {
                let (monotonic_ns, realtime_ns) = (self.input.signed()?, self.input.signed()?);
                self.block.anchors.push(Anchor { monotonic_ns, realtime_ns });
            }
            tag::MARK_INFO => self.mark(Severity::Info)?,
            tag::MARK_WARNING => self.mark(Severity::Warning)?,
            tag::OPEN => self.open()?,
            tag::TOTALS => self.totals()?,
            tag::DEVICE_ANCHOR => self.device_anchor()?,
            tag::STACK => self.stack()?,
            tag::LANE_TOTALS => self.lane_totals()?,
            _ => return None,
        }
        Some(())
    }

    fn span(&mut self, tag: u8) -> Option<()> {
        let flag = |flag: u8| tag & flag != 0;
        let input = &mut self.input;
        let depth = match tag & tag::SPAN_DEPTH {
            tag::SPAN_DEPTH => u8::try_from(input.number()?).ok()?,
            depth => depth,
        };
        let name = known(input.number()?, self.block.names.len()).map(NameId)?;
        let lane = match self.last_lane {
            Some(lane) if flag(tag::SPAN_SAME_LANE) => lane,
            _ => known(input.number()?, self.states.len()).map(LaneId)?,
        };
        let state = self.states.get_mut(lane.0 as usize)?;
        if !flag(tag::SPAN_SAME_ITERATION) {
            state.span_iteration = state.span_iteration.wrapping_add_signed(input.signed()?);
        }
        let index = if flag(tag::SPAN_INDEX) { Some(input.number()?) } else { None };
        let begin_ns = state.end_ns.wrapping_add(input.signed()?);
        let duration_ns = input.number()?;
        let device = if flag(tag::SPAN_DEVICE) {
            Some(DeviceTime { begin_ns: begin_ns.wrapping_add(input.signed()?), duration_ns: input.number()? })
        } else {
            None
        };
        state.end_ns = begin_ns.wrapping_add(duration_ns.cast_signed());
        let iteration = state.span_iteration.checked_sub(1);
        self.last_lane = Some(lane);
        self.block.spans.push(Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device });
        Some(())
    }

    fn lane(&mut self) -> Option<()> {
        let (name, device) = (self.input.text()?.to_owned(), self.input.text()?.to_owned());
        let rank = u32::try_from(self.input.number()?).ok()?;
        self.block.lanes.push(Lane { name, device, rank });
        self.states.push(LaneState::default());
        Some(())
    }

    fn counter(&mut self) -> Option<()> {
        let (name, unit) = (self.input.text()?.to_owned(), self.input.text()?.to_owned());
        let rank = u32::try_from(self.input.number()?).ok()?;
        self.block.counters.push(Counter { name, unit, rank });
        Some(())
    }

    fn iteration(&mut self, tag: u8) -> Option<()> {
        let input = &mut self.input;
        let lane = known(input.number()?, self.states.len()).map(LaneId)?;
        let kind = *KINDS.get(usize::from(input.byte()?))?;
        let state = self.states.get_mut(lane.0 as usize)?;
        let number = state.iteration.wrapping_add_signed(input.signed()?);
        let begin_ns = state.end_ns.wrapping_add(input.signed()?);
        let duration_ns = input.number()?;
        let cpu_ns = if tag & tag::ITERATION_CPU != 0 { Some(input.number()?) } else { None };
        let tokens = if tag & tag::ITERATION_TOKENS != 0 { Some(input.number()?) } else { None };
        (state.end_ns, state.iteration) = (begin_ns.wrapping_add(duration_ns.cast_signed()), number);
        self.block.iterations.push(Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens });
        Some(())
    }

    fn sample(&mut self, tag: u8) -> Option<()> {
        let counter = known(self.input.number()?, self.block.counters.len()).map(CounterId)?;
        let time_ns = self.sample_ns.wrapping_add(self.input.signed()?);
        let value = if tag == tag::SAMPLE_WHOLE {
            self.input.signed()? as f64
        } else {
            f64::from_le_bytes(*self.input.bytes(8)?.first_chunk()?)
        };
        self.sample_ns = time_ns;
        self.block.samples.push(Sample { counter, time_ns, value });
        Some(())
    }

    fn flow(&mut self, end: FlowEnd) -> Option<()> {
        let id = self.flow.0.wrapping_add_signed(self.input.signed()?);
        let lane = known(self.input.number()?, self.states.len()).map(LaneId)?;
        let time_ns = self.flow.1.wrapping_add(self.input.signed()?);
        self.flow = (id, time_ns);
        self.block.flows.push(Flow { id, end, lane, time_ns });
        Some(())
    }

    fn mark(&mut self, severity: Severity) -> Option<()> {
        let (time_ns, text) = (self.input.signed()?, self.input.text()?.to_owned());
        self.block.marks.push(Mark { time_ns, severity, text });
        Some(())
    }

    fn open(&mut self) -> Option<()> {
        // Pushed one by one: a damaged count must not reserve memory.
        let mut open = Vec::new();
        for _ in 0..self.input.number()? {
            let name = known(self.input.number()?, self.block.names.len()).map(NameId)?;
            let lane = known(self.input.number()?, self.states.len()).map(LaneId)?;
            let since = self.states.get(lane.0 as usize)?.end_ns;
            open.push(OpenSpan { name, lane, begin_ns: since.wrapping_add(self.input.signed()?) });
        }
        self.block.open = Some(open);
        Some(())
    }

    fn device_anchor(&mut self) -> Option<()> {
        let device = self.known_name()?;
        let (device_ns, host_ns) = (self.input.signed()?, self.input.signed()?);
        let uncertainty_ns = self.input.number()?;
        self.block.device_anchors.push(DeviceAnchor { device, device_ns, host_ns, uncertainty_ns });
        Some(())
    }

    fn stack(&mut self) -> Option<()> {
        let time_ns = self.stack_ns.wrapping_add(self.input.signed()?);
        let tid = u32::try_from(self.input.number()?).ok()?;
        let thread = self.known_name()?;
        let lane = match self.input.number()?.checked_sub(1) {
            Some(lane) => Some(known(lane, self.states.len()).map(LaneId)?),
            None => None,
        };
        let iteration = self.input.number()?.checked_sub(1);
        let (spans, frames) = (self.names()?, self.names()?);
        self.stack_ns = time_ns;
        self.block.stacks.push(StackSample { time_ns, tid, thread, lane, iteration, spans, frames });
        Some(())
    }

    fn lane_totals(&mut self) -> Option<()> {
        let lane = known(self.input.number()?, self.states.len()).map(LaneId)?;
        let mut number = || self.input.number();
        let (emitted, written, dropped) = (number()?, number()?, number()?);
        self.block.lane_totals.push(LaneTotals { lane, emitted, written, dropped });
        Some(())
    }

    fn known_name(&mut self) -> Option<NameId> {
        known(self.input.number()?, self.block.names.len()).map(NameId)
    }

    /// A count and as many names, pushed one by one: a damaged count must not reserve memory.
    fn names(&mut self) -> Option<Vec<NameId>> {
        let count = self.input.number()?;
        (0..count).map(|_| self.known_name()).collect()
    }

    fn totals(&mut self) -> Option<()> {
        let mut number = || self.input.number();
        self.block.totals = Some(Totals {
            emitted: number()?,
            written: number()?,
            dropped: number()?,
            open: number()?,
            negative: number()?,
            unresolved: number()?,
            misplaced: number()?,
        });
        Some(())
    }
}

/// An id of the block, if it has been introduced.
fn known(id: u64, count: usize) -> Option<u32> {
    u32::try_from(id).ok().filter(|id| (*id as usize) < count)
}
