//! Spans by their place: a tree of names that grows as it is asked for.

use crate::quick::QuickMap;
use dflash_timeline::record::NameId;

/// Where a kind of span stands: below what, under which name and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub parent: Option<usize>,
    pub name: NameId,
    pub index: Option<u64>,
}

/// One value per place. A parent stands before its children.
#[derive(Debug)]
pub(crate) struct Forest<T> {
    pub nodes: Vec<(Place, T)>,
    index: QuickMap<Place, usize>,
    /// Iterations resemble each other: after a place most often comes the one that came after it before.
    next: usize,
}

impl<T> Default for Forest<T> {
    fn default() -> Self {
        Self { nodes: Vec::new(), index: QuickMap::default(), next: 0 }
    }
}

impl<T: Default> Forest<T> {
    /// The number of a place, which is made if it is new.
    pub(crate) fn at(&mut self, place: Place) -> usize {
        let guess = if self.next < self.nodes.len() { self.next } else { 0 };
        let at = match self.nodes.get(guess) {
            Some((known, _)) if *known == place => guess,
            _ => self.look_up(place),
        };
        self.next = at + 1;
        at
    }

    #[cold]
    fn look_up(&mut self, place: Place) -> usize {
        *self.index.entry(place).or_insert_with(|| {
            self.nodes.push((place, T::default()));
            self.nodes.len() - 1
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Forest, Place};
    use dflash_timeline::record::NameId;

    #[test]
    fn a_place_keeps_its_number() {
        let mut forest: Forest<u64> = Forest::default();
        let place = |parent, name| Place { parent, name: NameId(name), index: None };
        let places =
            [place(None, 0), place(Some(0), 1), place(None, 1), place(None, 0), place(None, 1), place(Some(0), 1)];
        assert_eq!(places.map(|p| forest.at(p)), [0, 1, 2, 0, 2, 1]);
        assert_eq!(forest.nodes.len(), 3);
    }
}
