//! A block's payload back into records. The tables of what lies in it stand in `encode.rs` and `encode/span.rs`.

mod iteration;
mod later;
mod rare;
mod sample;
mod span;
mod v1;
mod v2;

use self::span::Shapes;
use crate::dictionary::{Dictionary, Ids, Local};
use crate::encode::{LaneState, tag};
use crate::format::Header;
use crate::record::FlowEnd;
use crate::varint::{Input, ROOM};
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
    /// Of version 2.
    v2_shapes: v2::Shapes,
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
        states.v2_shapes.clear();
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
        match self.version {
            1 => (0..count).try_for_each(|_| self.old_record(*self.input.0.first()?))?,
            2 => self.v2_records(count)?,
            _ => self.records(count)?,
        }
        // All of the payload, and nothing of the padding.
        (self.input.0.len() == PADDING).then_some(())
    }

    /// The tags stand in a column of their own, before what the records hold.
    fn records(&mut self, count: u32) -> Option<()> {
        let (mut tags, mut rest) = self.input.0.split_at_checked(count as usize)?;
        while let Some(tag) = tags.first().copied() {
            // Most records follow one of their sort.
            let count = match tag {
                tag::SPAN_NEW | tag::SPAN_ONCE => {
                    rest = self.new_span(tag, rest)?;
                    1
                }
                tag::SPAN.. => {
                    let (count, behind) = self.spans(tags, rest)?;
                    rest = behind;
                    count
                }
                tag::SAMPLE.. => {
                    let (count, behind) = self.samples(tags, rest)?;
                    rest = behind;
                    count
                }
                tag::ITERATION..=tag::ITERATION_LAST => {
                    rest = self.iteration(tag, rest)?;
                    1
                }
                _ => {
                    self.input = Input(rest);
                    self.seldom(tag)?;
                    rest = self.input.0;
                    1
                }
            };
            if count == 0 {
                return None;
            }
            tags = tags.get(count..)?;
        }
        self.input = Input(rest);
        Some(())
    }

    fn seldom(&mut self, tag: u8) -> Option<()> {
        match tag {
            tag::FLOW_PUT => self.flow(FlowEnd::Put),
            tag::FLOW_TAKE => self.flow(FlowEnd::Take),
            tag::ENTER => self.enter(),
            _ => self.rare(tag),
        }
    }
}

/// What the block's id stands for, if the text has been introduced.
#[inline]
fn id(ids: &[u32], local: u64) -> Option<u32> {
    ids.get(usize::try_from(local).ok()?).copied()
}
