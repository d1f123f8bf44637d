//! Texts that most blocks use stand first in each block, in the same order: a reader that knows the last block's knows them.

use crate::encode::Kept;

/// Blocks from one look at what is used to the next: no whole number of seconds, lest all looks find what comes once a
/// second.
const LOOK_EVERY: u32 = 15;

/// Which texts those are, by the writer's ids.
#[derive(Debug, Default)]
pub(crate) struct Regular {
    /// Names, lanes, counters.
    pub texts: [Vec<u32>; 3],
    /// How much of the block they are.
    pub kept: Kept,
    /// What the last look found.
    seen: [Vec<u32>; 3],
    blocks: u32,
}

/// What the next block begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    /// Nothing: what it introduces is looked at.
    Empty,
    /// The texts have changed, and are to be introduced.
    Changed,
    /// What the last block began with.
    Kept,
}

impl Regular {
    /// A block ends that used these texts. Those that two looks found are regular.
    pub(crate) fn next(&mut self, used: [&[u32]; 3]) -> Begin {
        self.blocks = self.blocks.wrapping_add(1);
        match self.blocks % LOOK_EVERY {
            0 => Begin::Empty,
            1 => {
                for ((texts, seen), used) in self.texts.iter_mut().zip(&mut self.seen).zip(used) {
                    let mut now = used.to_vec();
                    now.sort_unstable();
                    texts.clear();
                    texts.extend(now.iter().filter(|id| seen.binary_search(id).is_ok()));
                    *seen = now;
                }
                Begin::Changed
            }
            _ => Begin::Kept,
        }
    }
}
