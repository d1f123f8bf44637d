//! A block's payload back into records. The table of what lies in it stands in `encode.rs`.

mod rare;

use crate::dictionary::{Dictionary, Ids};
use crate::encode::{KINDS, LaneState, tag};
use crate::record::{CounterId, DeviceTime, Flow, FlowEnd, Iteration, LaneId, NameId, Sample, Span};
use crate::varint::Input;
use crate::visit::Visit;

/// The texts of a payload, the bytes of the records behind them, and how many those are. `None` if this is no payload.
pub(crate) fn texts(payload: &[u8], version: u8, records: u32) -> Option<(Dictionary, &[u8], u32)> {
    if version == 1 {
        return Some((scattered_texts(payload, records)?, payload, records));
    }
    let (mut found, mut input, mut left) = (Dictionary::default(), Input(payload), records);
    while left > 0 && matches!(input.0.first(), Some(&(tag::NAME | tag::LANE | tag::COUNTER))) {
        found.take(&mut input, version)?;
        left -= 1;
    }
    Some((found, input.0, left))
}

/// In version 1 texts stand anywhere, so all records are looked at, with ids as they are.
fn scattered_texts(payload: &[u8], records: u32) -> Option<Dictionary> {
    /// Takes nothing.
    struct Nothing;
    impl Visit for Nothing {}

    // A record is a byte at least.
    let all: Vec<u32> = (0..records.min(u32::try_from(payload.len()).ok()?)).collect();
    let ids = Ids { names: all.clone(), lanes: all.clone(), counters: all };
    let (mut states, mut nothing) = (States::default(), Nothing);
    let mut decoder = Decoder::new(payload, 1, &ids, &mut states, &mut nothing);
    decoder.records(records)?;
    Some(decoder.found)
}

/// Decodes `records` records, which must be all that is there; `None` if they are not. Ids become those in `ids`.
pub(crate) fn decode<V: Visit>(
    bytes: &[u8],
    (version, records): (u8, u32),
    ids: &Ids,
    states: &mut States,
    visit: &mut V,
) -> Option<()> {
    Decoder::new(bytes, version, ids, states, visit).records(records)
}

/// What the next record of a lane or counter is a difference to, by the block's ids.
#[derive(Debug, Default)]
pub(crate) struct States {
    lanes: Vec<LaneState>,
    counters: Vec<i64>,
}

struct Decoder<'a, 'v, V> {
    input: Input<'a>,
    version: u8,
    ids: &'v Ids,
    states: &'v mut States,
    visit: &'v mut V,
    last_lane: u64,
    sample_ns: i64,
    /// Last id put and taken; in version 1 the first one alone.
    flows: [u64; 2],
    /// Of version 1.
    flow_ns: i64,
    stack_ns: i64,
    /// Texts among the records, as in version 1.
    found: Dictionary,
}

impl<'a, 'v, V: Visit> Decoder<'a, 'v, V> {
    fn new(bytes: &'a [u8], version: u8, ids: &'v Ids, states: &'v mut States, visit: &'v mut V) -> Self {
        states.lanes.clear();
        states.lanes.resize(ids.lanes.len(), LaneState::default());
        states.counters.clear();
        states.counters.resize(ids.counters.len(), 0);
        Self {
            input: Input(bytes),
            version,
            ids,
            states,
            visit,
            // No lane has this number: a span cannot be on the lane of the one before the first.
            last_lane: u64::MAX,
            sample_ns: 0,
            flows: [0; 2],
            flow_ns: 0,
            stack_ns: 0,
            found: Dictionary::default(),
        }
    }

    fn records(&mut self, records: u32) -> Option<()> {
        for _ in 0..records {
            let tag = *self.input.0.first()?;
            if tag & tag::SPAN != 0 {
                self.span()?;
            } else {
                self.other(tag)?;
            }
        }
        self.input.0.is_empty().then_some(())
    }

    fn other(&mut self, tag: u8) -> Option<()> {
        match tag {
            tag::SAMPLE_FLOAT | tag::SAMPLE_WHOLE | tag::SAMPLE_THOUSANDTHS => self.sample(),
            tag::ITERATION..=tag::ITERATION_LAST => self.iteration(),
            tag::FLOW_PUT | tag::FLOW_TAKE => self.flow(),
            tag::NAME | tag::LANE | tag::COUNTER => self.found.take(&mut self.input, self.version),
            _ => self.rare(tag),
        }
    }

    #[inline]
    fn span(&mut self) -> Option<()> {
        let mut input = self.input;
        let tag = input.byte()?;
        let flag = |flag: u8| tag & flag != 0;
        let depth = match tag & tag::SPAN_DEPTH {
            tag::SPAN_DEPTH => u8::try_from(input.number()?).ok()?,
            depth => depth,
        };
        let name = id(&self.ids.names, input.small()?).map(NameId)?;
        let local = if flag(tag::SPAN_SAME_LANE) { self.last_lane } else { input.small()? };
        let state = self.states.lanes.get_mut(usize::try_from(local).ok()?)?;
        let lane = id(&self.ids.lanes, local).map(LaneId)?;
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
        (self.last_lane, self.input) = (local, input);
        self.visit.span(Span { name, lane, iteration, index, depth, begin_ns, duration_ns, device });
        Some(())
    }

    #[inline]
    fn sample(&mut self) -> Option<()> {
        let input = &mut self.input;
        let tag = input.byte()?;
        let local = input.small()?;
        let counter = id(&self.ids.counters, local).map(CounterId)?;
        let time_ns = self.sample_ns.wrapping_add(input.signed()?);
        let value = if tag == tag::SAMPLE_FLOAT {
            f64::from_le_bytes(*input.bytes(8)?.first_chunk()?)
        } else {
            let last = self.states.counters.get_mut(usize::try_from(local).ok()?)?;
            *last = if self.version == 1 { 0 } else { *last }.wrapping_add(input.signed()?);
            if tag == tag::SAMPLE_WHOLE { *last as f64 } else { *last as f64 / 1e3 }
        };
        self.sample_ns = time_ns;
        self.visit.sample(Sample { counter, time_ns, value });
        Some(())
    }

    fn iteration(&mut self) -> Option<()> {
        let input = &mut self.input;
        let tag = input.byte()?;
        let (local, kind) = match (self.version, input.small()?) {
            (1, lane) => (lane, u64::from(input.byte()?)),
            (_, both) => (both >> 3, both & 7),
        };
        let lane = id(&self.ids.lanes, local).map(LaneId)?;
        let kind = *KINDS.get(usize::try_from(kind).ok()?)?;
        let state = self.states.lanes.get_mut(usize::try_from(local).ok()?)?;
        let (number, begin) = if self.version == 1 { (state.iteration, state.end_ns) } else { state.next_iteration() };
        let number = number.wrapping_add_signed(input.signed()?);
        let begin_ns = begin.wrapping_add(input.signed()?);
        let duration_ns = if self.version == 1 {
            input.number()?
        } else {
            state.end_ns.wrapping_add(input.signed()?).wrapping_sub(begin_ns).cast_unsigned()
        };
        let cpu_ns = if tag & tag::ITERATION_CPU != 0 { Some(input.number()?) } else { None };
        let tokens = if tag & tag::ITERATION_TOKENS != 0 { Some(input.number()?) } else { None };
        (state.end_ns, state.iteration) = (begin_ns.wrapping_add(duration_ns.cast_signed()), number);
        state.iteration_end_ns = Some(state.end_ns);
        self.visit.iteration(Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens });
        Some(())
    }

    fn flow(&mut self) -> Option<()> {
        let end = if self.input.byte()? == tag::FLOW_PUT { FlowEnd::Put } else { FlowEnd::Take };
        let place = usize::from(self.version > 1 && end == FlowEnd::Take);
        let number = self.flows[place].wrapping_add_signed(self.input.signed()?);
        let local = self.input.small()?;
        let lane = id(&self.ids.lanes, local).map(LaneId)?;
        let since = match self.version {
            1 => self.flow_ns,
            _ => self.states.lanes.get(usize::try_from(local).ok()?)?.end_ns,
        };
        let time_ns = since.wrapping_add(self.input.signed()?);
        (self.flows[place], self.flow_ns) = (number, time_ns);
        self.visit.flow(Flow { id: number, end, lane, time_ns });
        Some(())
    }
}

/// What the block's id stands for, if the text has been introduced.
#[inline]
fn id(ids: &[u32], local: u64) -> Option<u32> {
    ids.get(usize::try_from(local).ok()?).copied()
}
