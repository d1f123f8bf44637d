//! Texts that most blocks use stand first in each block, in the same order: a reader that knows the last block's knows them.

use crate::encode::Kept;

/// Blocks from one look at what is used to the next, at first and at most: no whole number of seconds, lest all looks find
/// what comes once a second. Looks that find what is known already become rarer.
const LOOK_EVERY: [u32; 2] = [15, 255];

/// Which texts those are, by the writer's ids.
#[derive(Debug)]
pub(crate) struct Regular {
    /// Names, lanes, counters, streams.
    pub texts: [Vec<u32>; 4],
    /// How much of the block they are.
    pub kept: Kept,
    /// What the last look found.
    seen: [Vec<u32>; 4],
    /// The block that ends is looked at; else so many blocks come before one that is.
    looking: bool,
    left: u32,
    /// Blocks from one look to the next.
    every: u32,
}

impl Default for Regular {
    fn default() -> Self {
        let (texts, seen) = Default::default();
        Self { texts, kept: Kept::default(), seen, looking: true, left: 0, every: LOOK_EVERY[0] }
    }
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
    pub(crate) fn next(&mut self, used: [&[u32]; 4]) -> Begin {
        if !self.looking {
            self.looking = self.left == 0;
            self.left = self.left.saturating_sub(1);
            return if self.looking { Begin::Empty } else { Begin::Kept };
        }
        let before = self.texts.clone();
        for ((texts, seen), used) in self.texts.iter_mut().zip(&mut self.seen).zip(used) {
            let mut now = used.to_vec();
            now.sort_unstable();
            texts.clear();
            texts.extend(now.iter().filter(|id| seen.binary_search(id).is_ok()));
            *seen = now;
        }
        let [first, most] = LOOK_EVERY;
        let news = self.texts != before || self.texts.iter().all(Vec::is_empty);
        self.every = if news { first } else { (2 * self.every + 1).min(most) };
        (self.looking, self.left) = (false, self.every - 2);
        Begin::Changed
    }
}
