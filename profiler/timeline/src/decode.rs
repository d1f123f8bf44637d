//! A block's payload back into records. The tables of what lies in it stand in `encode.rs` and `encode/span.rs`.

mod later;
mod old;
mod rare;
mod sample;
mod span;

use self::span::Shapes;
use crate::dictionary::{Dictionary, Ids, Local};
use crate::encode::{KINDS, LaneState, tag};
use crate::format::Header;
use crate::record::{Flow, FlowEnd, Iteration, LaneId};
use crate::varint::{Input, ROOM, Room, unzigzag};
use crate::visit::Visit;

/// Bytes that must follow a payload, whatever they are: so a record can be read without looking where the payload ends.
pub(crate) const PADDING: usize = ROOM;

/// The records of a payload, behind its texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Records<'a> {
    version: u8,
    count: u32,
    /// Names, lanes, counters and streams that the payload introduces.
    texts: [usize; 4],
    /// Added to all times: to absolute ones, and to what the first differences are to.
    shift_ns: i64,
    /// The records, and the padding.
    bytes: &'a [u8],
}

impl Records<'_> {
    pub(crate) fn length(&self) -> usize {
        self.bytes.len()
    }
}

/// Takes a block's payload, and the padding behind it, apart: the texts go into `found`, the records are returned. `None`
/// if this is no payload.
///
/// What `found` holds of another block's texts is used as far as this block begins with the same.
pub(crate) fn open<'a>(header: &Header, bytes: &'a [u8], found: &mut Dictionary) -> Option<Records<'a>> {
    let (version, count, shift_ns) = (header.version, header.records, header.shift_ns);
    let payload = bytes.get(..bytes.len().checked_sub(PADDING)?)?;
    if version == 1 {
        *found = scattered_texts(bytes, count)?;
        return Some(Records { version, count, texts: found.counts(), shift_ns, bytes });
    }
    let (mut left, known) = found.begin(payload, count, header.rank);
    let mut input = Input(payload.get(known..)?);
    let further = |left: u32, input: &Input<'_>| left > 0 && input.0.first().is_some_and(|tag| Dictionary::holds(*tag));
    if further(left, &input) {
        found.forget();
    }
    while further(left, &input) {
        found.take(&mut input, header.rank)?;
        found.took(payload.len() - input.0.len());
        left -= 1;
    }
    let length = payload.len() - input.0.len();
    found.took_bytes(payload.get(known..length)?);
    Some(Records { version, count: left, texts: found.used, shift_ns, bytes: bytes.get(length..)? })
}

/// In version 1 texts stand anywhere, so all records are looked at, with ids as they are.
fn scattered_texts(bytes: &[u8], count: u32) -> Option<Dictionary> {
    /// Takes nothing.
    struct Nothing;
    impl Visit for Nothing {}

    // A record is a byte at least.
    let all: Vec<u32> = (0..count.min(u32::try_from(bytes.len()).ok()?)).collect();
    let texts = [all.len(), all.len(), all.len(), 0];
    let ids = Ids { names: all.clone(), lanes: all.clone(), counters: all, streams: Vec::new() };
    let (mut states, mut nothing) = (States::default(), Nothing);
    let records = Records { version: 1, count, texts, shift_ns: 0, bytes };
    let mut decoder = Decoder::new(records, &ids, &mut states, &mut nothing);
    decoder.all(count)?;
    Some(decoder.found)
}

/// Decodes the records, which must be all that is there; `None` if they are not. Ids become those in `ids`.
pub(crate) fn decode<V: Visit>(records: Records<'_>, ids: &Ids, states: &mut States, visit: &mut V) -> Option<()> {
    Decoder::new(records, ids, states, visit).all(records.count)
}

/// What the next record of a lane, counter or name is a difference to, by the block's ids.
#[derive(Debug, Default)]
pub(crate) struct States {
    lanes: Vec<LaneState>,
    counters: Vec<[i64; 3]>,
    /// The index of a name's next span, if it is the one after the last.
    next_index: Vec<u64>,
    shapes: Shapes,
}

struct Decoder<'a, 'v, V> {
    version: u8,
    /// The rest of the payload, and the padding.
    input: Input<'a>,
    ids: Local<'v>,
    states: &'v mut States,
    visit: &'v mut V,
    last_lane: u64,
    shift_ns: i64,
    sample_ns: i64,
    /// Last id put and taken; in version 1 the first one alone.
    flows: [u64; 2],
    stack_ns: i64,
    /// Of version 1: time of the last flow, texts among the records.
    old_flow_ns: i64,
    found: Dictionary,
}

impl<'a, 'v, V: Visit> Decoder<'a, 'v, V> {
    fn new(records: Records<'a>, ids: &'v Ids, states: &'v mut States, visit: &'v mut V) -> Self {
        let ids = ids.first(records.texts);
        states.shapes.clear();
        states.lanes.clear();
        let shift_ns = records.shift_ns;
        states.lanes.resize(ids.lanes.len(), LaneState { end_ns: shift_ns, ..LaneState::default() });
        states.counters.clear();
        states.counters.resize(ids.counters.len(), [0; 3]);
        states.next_index.clear();
        states.next_index.resize(ids.names.len(), 0);
        Self {
            version: records.version,
            input: Input(records.bytes),
            ids,
            states,
            visit,
            // No lane has this number: a span cannot be on the lane of the one before the first.
            last_lane: u64::MAX,
            shift_ns,
            sample_ns: shift_ns,
            flows: [0; 2],
            stack_ns: shift_ns,
            old_flow_ns: shift_ns,
            found: Dictionary::default(),
        }
    }

    fn all(&mut self, count: u32) -> Option<()> {
        if self.version == 1 {
            for _ in 0..count {
                self.old_record(*self.input.0.first()?)?;
            }
        } else {
            self.records(count)?;
        }
        // All of the payload, and nothing of the padding.
        (self.input.0.len() == PADDING).then_some(())
    }

    fn records(&mut self, count: u32) -> Option<()> {
        let mut rest = self.input.0;
        let mut left = count;
        while left > 0 {
            // Most records follow one of their sort.
            let tag = *rest.first()?;
            let (count, behind) = match tag {
                tag::SPAN.. => self.spans(rest, left)?,
                tag::SAMPLE.. => self.samples(rest, left)?,
                _ => (0, rest),
            };
            (rest, left) = (behind, left - count);
            if count == 0 {
                rest = rest.get(self.record(rest, tag)?..)?;
                left -= 1;
            }
        }
        self.input = Input(rest);
        Some(())
    }

    /// Reads a record, and returns its length; the same do the next ones.
    fn record(&mut self, rest: &'a [u8], tag: u8) -> Option<usize> {
        // A record that reaches into the padding leaves too little of it.
        let room = rest.first_chunk()?;
        match tag {
            tag::SPAN.. => self.span(room),
            tag::ITERATION..=tag::ITERATION_LAST => self.iteration(room),
            tag::FLOW_PUT => self.flow(room, FlowEnd::Put),
            tag::FLOW_TAKE => self.flow(room, FlowEnd::Take),
            _ => {
                self.input = Input(rest);
                self.rare(tag)?;
                Some(rest.len() - self.input.0.len())
            }
        }
    }

    #[inline(never)]
    fn iteration(&mut self, room: &[u8; ROOM]) -> Option<usize> {
        let (tag, mut input) = (room[0], Room::behind_tag(room));
        let both = input.small()?;
        let (local, kind) = (both >> 3, both & 7);
        let lane = id(self.ids.lanes, local).map(LaneId)?;
        let kind = *KINDS.get(usize::try_from(kind).ok()?)?;
        let state = self.states.lanes.get_mut(usize::try_from(local).ok()?)?;
        let (number, begin_ns) = state.next_iteration();
        // Mostly the one of the lane's last span.
        let number = number.wrapping_add_signed(unzigzag(input.small()?));
        let begin_ns = begin_ns.wrapping_add(input.signed()?);
        let end_ns = state.end_ns.wrapping_add(input.signed()?);
        let duration_ns = end_ns.wrapping_sub(begin_ns).cast_unsigned();
        let cpu_ns = if tag & tag::ITERATION_CPU != 0 { Some(input.number()?) } else { None };
        let tokens = if tag & tag::ITERATION_TOKENS != 0 { Some(input.number()?) } else { None };
        *state = LaneState { end_ns, iteration: number, iteration_end_ns: Some(end_ns), ..*state };
        self.visit.iteration(Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens });
        Some(input.length)
    }

    fn flow(&mut self, room: &[u8; ROOM], end: FlowEnd) -> Option<usize> {
        let mut input = Room::behind_tag(room);
        let last = &mut self.flows[usize::from(end == FlowEnd::Take)];
        *last = last.wrapping_add_signed(input.signed()?);
        let local = input.small()?;
        let lane = id(self.ids.lanes, local).map(LaneId)?;
        let since = self.states.lanes.get(usize::try_from(local).ok()?)?.end_ns;
        let time_ns = since.wrapping_add(input.signed()?);
        self.visit.flow(Flow { id: *last, end, lane, time_ns });
        Some(input.length)
    }
}

/// What the block's id stands for, if the text has been introduced.
#[inline]
fn id(ids: &[u32], local: u64) -> Option<u32> {
    ids.get(usize::try_from(local).ok()?).copied()
}
