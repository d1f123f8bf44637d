//! The texts of a block, and what ids they have among all.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;

use crate::decode::{Records, open};
use crate::format::Header;
use crate::record::{Counter, Lane};
use crate::texts::Texts;
use crate::timeline::Timeline;

/// The texts of one block, as they stand in it.
#[derive(Debug, Default)]
pub(crate) struct Dictionary {
    pub texts: Texts,
    /// Places in `texts`.
    pub names: Vec<Range<usize>>,
    /// Name, device, rank.
    pub lanes: Vec<(Range<usize>, Range<usize>, u32)>,
    /// Name, unit, rank.
    pub counters: Vec<(Range<usize>, Range<usize>, u32)>,
}

/// The timeline's ids of a block's texts, by the block's ids.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids {
    pub names: Vec<u32>,
    pub lanes: Vec<u32>,
    pub counters: Vec<u32>,
}

/// The texts of a timeline by what they say, as bytes.
#[derive(Debug, Default)]
pub(crate) struct Known {
    names: Map,
    lanes: Map,
    counters: Map,
    /// Built anew for each lane and counter.
    key: Vec<u8>,
}

type Map = HashMap<Vec<u8>, u32, BuildHasherDefault<Quick>>;

impl Known {
    /// The ids of a block's texts, and the records behind those; what is new goes into `timeline`. `None`: the padded
    /// payload is none.
    pub(crate) fn ids<'a>(
        &mut self,
        header: &Header,
        padded: &'a [u8],
        timeline: &mut Timeline,
    ) -> Option<(Ids, Records<'a>)> {
        let (Dictionary { texts, names, lanes, counters }, records) = open(header, padded)?;
        let mut ids = Ids::default();
        ids.names.extend(names.iter().map(|place| {
            self.names.get(texts.bytes(place)).copied().unwrap_or_else(|| {
                let id = add(&mut timeline.names, texts.text(place).to_owned());
                self.names.insert(texts.bytes(place).to_owned(), id);
                id
            })
        }));
        ids.lanes.extend(lanes.iter().map(|place| {
            keyed(&mut self.lanes, &mut self.key, &texts, place, |name, device, rank| {
                add(&mut timeline.lanes, Lane { name, device, rank })
            })
        }));
        ids.counters.extend(counters.iter().map(|place| {
            keyed(&mut self.counters, &mut self.key, &texts, place, |name, unit, rank| {
                add(&mut timeline.counters, Counter { name, unit, rank })
            })
        }));
        Some((ids, records))
    }
}

/// The id of two texts and a rank.
fn keyed(
    known: &mut Map,
    key: &mut Vec<u8>,
    texts: &Texts,
    (first, second, rank): &(Range<usize>, Range<usize>, u32),
    add: impl FnOnce(String, String, u32) -> u32,
) -> u32 {
    key.clear();
    // The first text's length keeps ("a", "bc") and ("ab", "c") apart.
    key.extend_from_slice(&first.len().to_le_bytes());
    key.extend_from_slice(&rank.to_le_bytes());
    key.extend_from_slice(texts.bytes(first));
    key.extend_from_slice(texts.bytes(second));
    if let Some(id) = known.get(key) {
        return *id;
    }
    let id = add(texts.text(first).to_owned(), texts.text(second).to_owned(), *rank);
    known.insert(key.clone(), id);
    id
}

fn add<T>(all: &mut Vec<T>, text: T) -> u32 {
    all.push(text);
    (all.len() - 1) as u32
}

/// A hash of eight bytes a step: each block asks for a few dozen texts.
#[derive(Debug, Default)]
struct Quick(u64);

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        let (eights, rest) = bytes.as_chunks::<8>();
        for eight in eights {
            self.write_u64(u64::from_le_bytes(*eight));
        }
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        self.write_u64(u64::from_le_bytes(last) ^ (bytes.len() as u64) << 56);
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u8(&mut self, byte: u8) {
        self.write_u64(u64::from(byte));
    }

    fn finish(&self) -> u64 {
        self.0.rotate_left(26)
    }
}
