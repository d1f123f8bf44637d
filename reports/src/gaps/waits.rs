//! What a lane's host waited for, while gaps are not yet accounted for.

use crate::words::Words;
use dflash_timeline::record::Span;

/// What the host waited for.
pub(super) struct Waits {
    pub input: Vec<(i64, i64)>,
    pub room: Vec<(i64, i64)>,
    pub sync: Vec<(i64, i64)>,
    /// End of the last of them: what is nested in a wait is part of it.
    until: i64,
}

impl Default for Waits {
    fn default() -> Self {
        Self { input: Vec::new(), room: Vec::new(), sync: Vec::new(), until: i64::MIN }
    }
}

impl Waits {
    pub(super) fn add(&mut self, words: &Words, span: &Span) {
        let word = words.get(span.name);
        let list = match word {
            _ if word.sync => &mut self.sync,
            _ if word.input => &mut self.input,
            _ if word.room => &mut self.room,
            _ => return,
        };
        let end = span.begin_ns.saturating_add_unsigned(span.duration_ns);
        list.push((span.begin_ns.max(self.until), end));
        self.until = self.until.max(end);
    }

    pub(super) fn len(&self) -> usize {
        self.input.len() + self.room.len() + self.sync.len()
    }

    pub(super) fn forget_before(&mut self, ns: i64) {
        [&mut self.input, &mut self.room, &mut self.sync]
            .into_iter()
            .for_each(|list| list.retain(|(_, end)| *end > ns));
    }
}
