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

    pub(crate) fn get(&self, id: u32) -> &T {
        &self.texts[id as usize]
    }
}

/// A block's ids of the writer's ids.
#[derive(Debug, Default)]
pub(crate) struct Ids {
    local: Vec<Option<u32>>,
    used: u32,
}

impl Ids {
    /// The block's id; a text that is new in the block is introduced first.
    pub(crate) fn id(&mut self, id: u32, introduce: impl FnOnce(u32)) -> u32 {
        let place = id as usize;
        if place >= self.local.len() {
            self.local.resize(place + 1, None);
        }
        if let Some(local) = self.local[place] {
            return local;
        }
        introduce(id);
        let local = self.used;
        self.local[place] = Some(local);
        self.used += 1;
        local
    }
}
