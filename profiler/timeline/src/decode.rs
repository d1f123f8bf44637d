//! A block's payload back into records. The table of what lies in it stands in `encode.rs`.

mod rare;

use crate::dictionary::{Dictionary, Ids};
use crate::encode::{KINDS, LaneState, tag};
use crate::record::{CounterId, DeviceTime, Flow, FlowEnd, Iteration, LaneId, NameId, Sample, Span};
use crate::varint::Input;
use crate::visit::Visit;

/// The texts of a payload, the bytes of the records behind them, and how many those are. `None` if this is no payload.
pub(crate) fn texts(payload: &[u8], version: u8, records: u32) -> Option<(Dictionary<'_>, &[u8], u32)> {
    if version == 1 {
        return Some((scattered_texts(payload, records)?, payload, records));
    }
    let (mut found, mut input, mut left) = (Dictionary::default(), Input(payload), records);
    while left > 0 && matches!(input.0.first(), Some(&(tag::NAME | tag::LANE | tag::COUNTER))) {
        found.take(&mut input)?;
        left -= 1;
    }
    Some((found, input.0, left))
}

/// In version 1 texts stand anywhere, so all records are looked at, with ids as they are.
fn scattered_texts(payload: &[u8], records: u32) -> Option<Dictionary<'_>> {
    /// Takes nothing.
    struct Nothing;
    impl Visit for Nothing {}

    // A record is a byte at least.
    let all: Vec<u32> = (0..records.min(u32::try_from(payload.len()).ok()?)).collect();
    let ids = Ids { names: all.clone(), lanes: all.clone(), counters: all };
    let (mut states, mut nothing) = (Vec::new(), Nothing);
    let mut decoder = Decoder::new(payload, &ids, &mut states, &mut nothing);
    decoder.records(records)?;
    Some(decoder.found)
}

/// Decodes `records` records, which must be all that is there; `None` if they are not. Ids become those in `ids`.
pub(crate) fn decode<V: Visit>(
    bytes: &[u8],
    records: u32,
    ids: &Ids,
    states: &mut Vec<LaneState>,
    visit: &mut V,
) -> Option<()> {
    Decoder::new(bytes, ids, states, visit).records(records)
}

struct Decoder<'a, 'v, V> {
    input: Input<'a>,
    ids: &'v Ids,
    /// By the block's ids.
    states: &'v mut Vec<LaneState>,
    visit: &'v mut V,
    last_lane: u64,
    sample_ns: i64,
    flow: (u64, i64),
    stack_ns: i64,
    /// Texts among the records, as in version 1.
    found: Dictionary<'a>,
}

impl<'a, 'v, V: Visit> Decoder<'a, 'v, V> {
    fn new(bytes: &'a [u8], ids: &'v Ids, states: &'v mut Vec<LaneState>, visit: &'v mut V) -> Self {
        states.clear();
        states.resize(ids.lanes.len(), LaneState::default());
        let (input, found) = (Input(bytes), Dictionary::default());
        // No lane has this number: a span cannot be on the lane of the one before the first.
        Self { input, ids, states, visit, last_lane: u64::MAX, sample_ns: 0, flow: (0, 0), stack_ns: 0, found }
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
            tag::SAMPLE_FLOAT | tag::SAMPLE_WHOLE => self.sample(),
            tag::ITERATION..=tag::ITERATION_LAST => self.iteration(),
            tag::FLOW_PUT => self.flow(FlowEnd::Put),
            tag::FLOW_TAKE => self.flow(FlowEnd::Take),
            tag::NAME | tag::LANE | tag::COUNTER => self.found.take(&mut self.input),
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
        let state = self.states.get_mut(usize::try_from(local).ok()?)?;
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
        let counter = id(&self.ids.counters, input.small()?).map(CounterId)?;
        let time_ns = self.sample_ns.wrapping_add(input.signed()?);
        let value = if tag == tag::SAMPLE_WHOLE {
            input.signed()? as f64
        } else {
            f64::from_le_bytes(*input.bytes(8)?.first_chunk()?)
        };
        self.sample_ns = time_ns;
        self.visit.sample(Sample { counter, time_ns, value });
        Some(())
    }

    fn iteration(&mut self) -> Option<()> {
        let input = &mut self.input;
        let tag = input.byte()?;
        let local = input.small()?;
        let lane = id(&self.ids.lanes, local).map(LaneId)?;
        let kind = *KINDS.get(usize::from(input.byte()?))?;
        let state = self.states.get_mut(usize::try_from(local).ok()?)?;
        let number = state.iteration.wrapping_add_signed(input.signed()?);
        let begin_ns = state.end_ns.wrapping_add(input.signed()?);
        let duration_ns = input.number()?;
        let cpu_ns = if tag & tag::ITERATION_CPU != 0 { Some(input.number()?) } else { None };
        let tokens = if tag & tag::ITERATION_TOKENS != 0 { Some(input.number()?) } else { None };
        (state.end_ns, state.iteration) = (begin_ns.wrapping_add(duration_ns.cast_signed()), number);
        self.visit.iteration(Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens });
        Some(())
    }

    fn flow(&mut self, end: FlowEnd) -> Option<()> {
        self.input.byte()?;
        let number = self.flow.0.wrapping_add_signed(self.input.signed()?);
        let lane = id(&self.ids.lanes, self.input.small()?).map(LaneId)?;
        let time_ns = self.flow.1.wrapping_add(self.input.signed()?);
        self.flow = (number, time_ns);
        self.visit.flow(Flow { id: number, end, lane, time_ns });
        Some(())
    }
}

/// What the block's id stands for, if the text has been introduced.
#[inline]
fn id(ids: &[u32], local: u64) -> Option<u32> {
    ids.get(usize::try_from(local).ok()?).copied()
}
