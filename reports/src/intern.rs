//! Texts by their place in a list, found by hash: a copy of each text as a key would take as much room again.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Places of texts in a list that somebody else keeps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places {
    first: HashMap<u64, u32>,
    /// Of those whose hash another has already.
    others: HashMap<u64, Vec<u32>>,
}

impl Places {
    /// The place of a text; `is_it` says whether the text at a place is the one.
    pub(crate) fn find<T: Hash + ?Sized>(&self, text: &T, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let hash = hash(text);
        let first = self.first.get(&hash).copied()?;
        if is_it(first) {
            return Some(first);
        }
        self.others.get(&hash)?.iter().copied().find(|at| is_it(*at))
    }

    /// Notes the place of a text that is new.
    pub(crate) fn note<T: Hash + ?Sized>(&mut self, text: &T, at: u32) {
        match self.first.entry(hash(text)) {
            Entry::Vacant(place) => _ = place.insert(at),
            Entry::Occupied(place) => self.others.entry(*place.key()).or_default().push(at),
        }
    }
}

fn hash<T: Hash + ?Sized>(text: &T) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::{Places, hash};

    #[test]
    fn texts_of_one_hash_are_told_apart() {
        let mut places = Places::default();
        let texts = ["a", "b", "c"];
        for (at, text) in texts.iter().enumerate() {
            assert_eq!(places.find(*text, |place| texts[place as usize] == *text), None);
            places.note(*text, at as u32);
        }
        // As if all had the hash of the first.
        places.others.insert(hash("a"), vec![1, 2]);
        assert_eq!(places.find("a", |place| place == 2), Some(2));
        assert_eq!(places.find("b", |place| texts[place as usize] == "b"), Some(1));
    }
}
