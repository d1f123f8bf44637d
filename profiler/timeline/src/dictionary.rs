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

/// The texts of a timeline by what they say.
#[derive(Debug, Default)]
pub(crate) struct Known {
    names: Map<String>,
    lanes: Map<String>,
    counters: Map<String>,
    /// Built anew for each lane and counter.
    key: String,
}

type Map<T> = HashMap<T, u32, BuildHasherDefault<Quick>>;

impl Known {
    /// The ids of a block's texts, and the records behind those; what is new goes into `timeline`. `None`: the padded
    /// payload is none.
    pub(crate) fn ids<'a>(
        &mut self,
        header: &Header,
        padded: &'a [u8],
        timeline: &mut Timeline,
    ) -> Option<(Ids, Records<'a>)> {
        let (found, records) = open(header, padded)?;
        let (mut ids, text) = (Ids::default(), |place| found.texts.text(place));
        ids.names.extend(found.names.iter().map(|name| {
            let name = found.texts.text(name);
            self.names.get(name).copied().unwrap_or_else(|| {
                let id = add(&mut timeline.names, name.to_owned());
                self.names.insert(name.to_owned(), id);
                id
            })
        }));
        ids.lanes.extend(found.lanes.iter().map(|(name, device, rank)| {
            keyed(&mut self.lanes, &mut self.key, (text(name), text(device), *rank), |name, device, rank| {
                add(&mut timeline.lanes, Lane { name, device, rank })
            })
        }));
        ids.counters.extend(found.counters.iter().map(|(name, unit, rank)| {
            keyed(&mut self.counters, &mut self.key, (text(name), text(unit), *rank), |name, unit, rank| {
                add(&mut timeline.counters, Counter { name, unit, rank })
            })
        }));
        Some((ids, records))
    }
}

/// The id of two texts and a rank.
fn keyed(
    known: &mut Map<String>,
    key: &mut String,
    (first, second, rank): (&str, &str, u32),
    add: impl FnOnce(String, String, u32) -> u32,
) -> u32 {
    key.clear();
    // The first text's length keeps ("a", "bc") and ("ab", "c") apart.
    for byte in (first.len() as u64).to_le_bytes().into_iter().chain(rank.to_le_bytes()) {
        key.push(char::from(byte));
    }
    key.push_str(first);
    key.push_str(second);
    if let Some(id) = known.get(key.as_str()) {
        return *id;
    }
    let id = add(first.to_owned(), second.to_owned(), rank);
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
