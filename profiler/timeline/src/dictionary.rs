//! The texts of a block, and what ids they have among all.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Range;
use std::sync::Arc;

use crate::decode::{Records, open};
use crate::format::Header;
use crate::record::{Counter, Lane, Stream};
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
    /// Device, number, rank.
    pub streams: Vec<(Range<usize>, Range<usize>, u32)>,
    /// The bytes that it was made of, and where each text's end, with how many names, lanes, counters, streams and
    /// plain texts there were then.
    bytes: Vec<u8>,
    ends: Vec<(usize, [usize; 5])>,
    rank: u32,
    /// Texts that the block begins with and that were known.
    begin: usize,
    /// Names, lanes, counters and streams of the block: it may be fewer than there are.
    pub used: [usize; 4],
    /// Those that were there before the block.
    kept: [usize; 4],
}

impl Dictionary {
    /// Finds the texts that `payload` begins with, too. Returns how many of `count` records are left then, and the length
    /// of what was found. The others are kept until `forget`: blocks often take turns between fewer and more texts.
    pub(crate) fn begin(&mut self, payload: &[u8], count: u32, rank: u32) -> (u32, usize) {
        // A rank's own lanes do not say whose they are.
        let other = self.rank != rank;
        let same = if other { 0 } else { common(&self.bytes, payload) };
        let begin = self.ends.partition_point(|(end, _)| *end <= same).min(count as usize);
        let (length, [names, lanes, counters, streams, _]) = self.place(begin);
        let used = [names, lanes, counters, streams];
        (self.rank, self.used, self.kept, self.begin) = (rank, used, self.counts(), begin);
        (count - begin as u32, length)
    }

    /// Forgets the texts that the block does not begin with; others follow.
    pub(crate) fn forget(&mut self) {
        let (length, [names, lanes, counters, streams, texts]) = self.place(self.begin);
        self.names.truncate(names);
        self.lanes.truncate(lanes);
        self.counters.truncate(counters);
        self.streams.truncate(streams);
        self.texts.truncate(texts);
        self.ends.truncate(self.begin);
        self.bytes.truncate(length);
        self.kept = [names, lanes, counters, streams];
    }

    /// A text of the block has been taken, which ends there.
    pub(crate) fn took(&mut self, end: usize) {
        let [names, lanes, counters, streams] = self.counts();
        self.ends.push((end, [names, lanes, counters, streams, self.texts.count()]));
        self.used = self.counts();
    }

    /// These bytes have been taken, behind those that the block began with.
    pub(crate) fn took_bytes(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Names, lanes, counters and streams that are there.
    pub(crate) fn counts(&self) -> [usize; 4] {
        [self.names.len(), self.lanes.len(), self.counters.len(), self.streams.len()]
    }

    /// Where the first `count` texts end, and how many names, lanes, counters, streams and plain texts they are.
    fn place(&self, count: usize) -> (usize, [usize; 5]) {
        count.checked_sub(1).and_then(|last| self.ends.get(last)).copied().unwrap_or_default()
    }
}

/// How many bytes two slices begin with alike.
fn common(a: &[u8], b: &[u8]) -> usize {
    const STEP: usize = 32;
    let chunks = a.chunks_exact(STEP).zip(b.chunks_exact(STEP)).take_while(|(a, b)| a == b).count() * STEP;
    chunks + a[chunks..].iter().zip(&b[chunks..]).take_while(|(a, b)| a == b).count()
}

/// The timeline's ids of a block's texts, by the block's ids. There may be more than the block has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids {
    pub names: Vec<u32>,
    pub lanes: Vec<u32>,
    pub counters: Vec<u32>,
    pub streams: Vec<u32>,
}

/// The same of one block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Local<'a> {
    pub names: &'a [u32],
    pub lanes: &'a [u32],
    pub counters: &'a [u32],
    pub streams: &'a [u32],
}

impl Ids {
    /// Those of a block that has so many names, lanes, counters and streams.
    pub(crate) fn first(&self, [names, lanes, counters, streams]: [usize; 4]) -> Local<'_> {
        Local {
            streams: first(&self.streams, streams),
            names: first(&self.names, names),
            lanes: first(&self.lanes, lanes),
            counters: first(&self.counters, counters),
        }
    }

    fn counts(&self) -> [usize; 4] {
        [self.names.len(), self.lanes.len(), self.counters.len(), self.streams.len()]
    }
}

fn first(ids: &[u32], count: usize) -> &[u32] {
    ids.get(..count).unwrap_or(ids)
}

/// The texts of a timeline by what they say, as bytes.
#[derive(Debug, Default)]
pub(crate) struct Known {
    names: Map,
    lanes: Map,
    counters: Map,
    streams: Map,
    /// Built anew for each lane and counter.
    key: Vec<u8>,
    /// The last block's texts, and their ids.
    dictionary: Dictionary,
    ids: Arc<Ids>,
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
    ) -> Option<(Arc<Ids>, Records<'a>)> {
        let found = &mut self.dictionary;
        let Some(records) = open(header, padded, found) else {
            *found = Dictionary::default();
            return None;
        };
        let kept = found.kept;
        if found.counts() == kept && self.ids.counts() == kept {
            return Some((Arc::clone(&self.ids), records));
        }
        let Dictionary { texts, names, lanes, counters, streams, .. } = &*found;
        let ids = Arc::make_mut(&mut self.ids);
        ids.names.truncate(kept[0]);
        ids.names.extend(names[kept[0]..].iter().map(|place| {
            self.names.get(texts.bytes(place)).copied().unwrap_or_else(|| {
                let id = add(&mut timeline.names, texts.text(place).to_owned());
                self.names.insert(texts.bytes(place).to_owned(), id);
                id
            })
        }));
        ids.lanes.truncate(kept[1]);
        ids.lanes.extend(lanes[kept[1]..].iter().map(|place| {
            keyed(&mut self.lanes, &mut self.key, texts, place, |name, device, rank| {
                add(&mut timeline.lanes, Lane { name, device, rank })
            })
        }));
        ids.counters.truncate(kept[2]);
        ids.counters.extend(counters[kept[2]..].iter().map(|place| {
            keyed(&mut self.counters, &mut self.key, texts, place, |name, unit, rank| {
                add(&mut timeline.counters, Counter { name, unit, rank })
            })
        }));
        ids.streams.truncate(kept[3]);
        ids.streams.extend(streams[kept[3]..].iter().map(|place| {
            keyed(&mut self.streams, &mut self.key, texts, place, |device, number, rank| {
                // Looked at when it was taken from the block.
                let number = number.parse().unwrap_or_default();
                add(&mut timeline.streams, Stream { device, number, rank })
            })
        }));
        Some((Arc::clone(&self.ids), records))
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
