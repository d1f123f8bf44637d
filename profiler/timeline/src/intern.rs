//! Texts as small numbers.

use std::collections::HashMap;
use std::hash::Hash;

/// Texts numbered in the order of their first use.
#[derive(Debug)]
pub(crate) struct Interner<T> {
    ids: HashMap<T, u32>,
    texts: Vec<T>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { ids: HashMap::new(), texts: Vec::new() }
    }
}

impl<T: Clone + Eq + Hash> Interner<T> {
    pub(crate) fn id<Q>(&mut self, text: &Q) -> u32
    where
        Q: ?Sized + Eq + Hash + ToOwned<Owned = T>,
        T: std::borrow::Borrow<Q>,
    {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = self.texts.len() as u32;
        self.texts.push(text.to_owned());
        self.ids.insert(text.to_owned(), id);
        id
    }

    /// The text of an id; `None` of one that was never given out.
    pub(crate) fn get(&self, id: u32) -> Option<&T> {
        self.texts.get(id as usize)
    }
}

/// A block's ids of the writer's ids.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    /// By the writer's id; `NONE`: not introduced in this block.
    local: Vec<u32>,
    /// In the order in which they were introduced.
    used: Vec<u32>,
}

pub(crate) const NONE: u32 = u32::MAX;

impl Ids {
    /// The block's id, if the text has been introduced in this block.
    #[inline]
    pub(crate) fn get(&self, id: u32) -> Option<u32> {
        Some(self.get_or_none(id)).filter(|local| *local != NONE)
    }

    /// The same, `NONE` for none.
    #[inline]
    pub(crate) fn get_or_none(&self, id: u32) -> u32 {
        self.local.get(id as usize).copied().unwrap_or(NONE)
    }

    /// Notes that the text has just been introduced, and returns its id.
    #[cold]
    pub(crate) fn introduced(&mut self, id: u32) -> u32 {
        let place = id as usize;
        if place >= self.local.len() {
            self.local.resize(place + 1, NONE);
        }
        self.local[place] = self.used.len() as u32;
        self.used.push(id);
        self.local[place]
    }

    /// Begins the next block, in which the first `kept` texts are introduced already.
    pub(crate) fn clear(&mut self, kept: usize) {
        for id in self.used.drain(kept.min(self.used.len())..) {
            self.local[id as usize] = NONE;
        }
    }

    /// The texts of this block, by the writer's ids.
    pub(crate) fn used(&self) -> &[u32] {
        &self.used
    }
}
