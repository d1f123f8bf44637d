//! What the names of spans say, looked at once a name and not once a span.

use crate::stages::{is_sync, is_wait};
use dflash_timeline::Timeline;
use dflash_timeline::record::NameId;

/// What a name says about a span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word {
    /// `*.wait`: waits for input.
    pub input: bool,
    /// `*.put`: waits for room.
    pub room: bool,
    /// `sync.*`: waits for the device.
    pub sync: bool,
    /// `*.reduce`: waits for its peers.
    pub reduce: bool,
}

impl Word {
    fn of(name: &str) -> Self {
        let (input, sync) = (name.ends_with(".wait"), is_sync(name));
        debug_assert!(!input || is_wait(name), "one meaning of waiting");
        Self { input, room: name.ends_with(".put"), sync, reduce: name.ends_with(".reduce") }
    }

    /// For input or for room.
    pub(crate) fn waits(self) -> bool {
        self.input || self.room
    }
}

/// The words of a timeline's names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words(Vec<Word>);

impl Words {
    pub(crate) fn of(timeline: &Timeline) -> Self {
        let mut words = Self::default();
        words.texts(timeline);
        words
    }

    /// Takes note of new names.
    pub(crate) fn texts(&mut self, timeline: &Timeline) {
        let known = self.0.len().min(timeline.names.len());
        self.0.extend(timeline.names[known..].iter().map(|name| Word::of(name)));
    }

    /// A name that there is not says nothing.
    #[inline]
    pub(crate) fn get(&self, NameId(name): NameId) -> Word {
        self.0.get(name as usize).copied().unwrap_or_default()
    }
}
