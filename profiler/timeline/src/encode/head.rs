//! The texts that a block begins with.
//!
//! What one block introduces, a later one often introduces again in the same order: first what most blocks use, then the
//! counters that are read once a second. Its bytes are the same then, and are not packed anew.

use super::tag;
use crate::texts::{Mark, Packer};
use crate::varint::put;

/// The texts of a block in the making.
#[derive(Debug)]
pub(super) struct Head {
    /// Those of the block, and behind them what an earlier block introduced further.
    bytes: Vec<u8>,
    /// How much of it is the block's.
    used: usize,
    packer: Packer,
    /// Where the packer stood behind the texts that are kept.
    begin: Mark,
    /// What stands in `bytes` behind the texts that are kept, in order.
    known: Vec<Known>,
    /// How many of those are the block's.
    taken: usize,
    /// Whose block it is: its own lanes and counters need not say so.
    rank: u32,
}

/// What is introduced: tells the same numbers of a name, a lane, a counter and a stream apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Name,
    Lane,
    Counter,
    Stream,
}

/// A text that has been introduced.
#[derive(Debug)]
struct Known {
    /// With the writer's id.
    what: (What, u32),
    /// Where its bytes end.
    end: usize,
    packer: Mark,
}

/// The texts that a block begins with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Kept {
    /// Names, lanes, counters, streams.
    pub texts: [usize; 4],
    bytes: usize,
    packer: Mark,
}

impl Head {
    pub(super) fn of_rank(rank: u32) -> Self {
        let (packer, begin) = (Packer::default(), Mark::default());
        Self { bytes: Vec::new(), used: 0, packer, begin, known: Vec::new(), taken: 0, rank }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or_default()
    }

    #[inline]
    pub(super) fn length(&self) -> usize {
        self.used
    }

    /// What the block holds so far is what those to come begin with.
    pub(super) fn keep(&mut self, texts: [usize; 4]) -> Kept {
        self.forget();
        self.known.clear();
        (self.taken, self.begin) = (0, self.packer.mark());
        Kept { texts, bytes: self.used, packer: self.begin }
    }

    /// Begins the next block, with what `keep` returned last, or with nothing.
    pub(super) fn clear(&mut self, kept: &Kept) {
        (self.used, self.taken) = (kept.bytes, 0);
        if kept.bytes == 0 {
            self.bytes.clear();
            self.known.clear();
            self.packer.restore(&kept.packer);
            self.begin = kept.packer;
        }
    }

    pub(super) fn name(&mut self, id: u32, name: &str) {
        self.introduce((What::Name, id), tag::NAME, &[name], None);
    }

    pub(super) fn lane(&mut self, id: u32, texts: [&str; 2], rank: u32) {
        let other = (rank != self.rank).then_some(rank);
        self.introduce((What::Lane, id), if other.is_some() { tag::LANE } else { tag::OWN_LANE }, &texts, other);
    }

    pub(super) fn counter(&mut self, id: u32, texts: [&str; 2], rank: u32) {
        let other = (rank != self.rank).then_some(rank);
        let tag = if other.is_some() { tag::COUNTER } else { tag::OWN_COUNTER };
        self.introduce((What::Counter, id), tag, &texts, other);
    }

    pub(super) fn stream(&mut self, id: u32, device: &str, number: i64, rank: u32) {
        let other = (rank != self.rank).then_some(rank);
        let tag = if other.is_some() { tag::STREAM } else { tag::OWN_STREAM };
        self.introduce((What::Stream, id), tag, &[device, &number.to_string()], other);
    }

    fn introduce(&mut self, what: (What, u32), tag: u8, texts: &[&str], rank: Option<u32>) {
        match self.known.get(self.taken) {
            Some(known) if known.what == what => self.used = known.end,
            _ => {
                self.forget();
                self.bytes.push(tag);
                texts.iter().for_each(|text| self.packer.pack(&mut self.bytes, text));
                rank.iter().for_each(|rank| put(&mut self.bytes, u64::from(*rank)));
                self.used = self.bytes.len();
                self.known.push(Known { what, end: self.used, packer: self.packer.mark() });
            }
        }
        self.taken += 1;
    }

    /// Forgets what an earlier block introduced further.
    fn forget(&mut self) {
        if self.taken < self.known.len() {
            self.known.truncate(self.taken);
            self.bytes.truncate(self.used);
            self.packer.restore(self.known.last().map_or(&self.begin, |known| &known.packer));
        }
    }
}
