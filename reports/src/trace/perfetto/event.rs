//! What a track event says besides its time and its track.

use crate::trace::proto::Message;
use std::collections::HashMap;

/// The further fields of a track event.
pub(super) struct Event<'a> {
    pub event: &'a mut Message,
    pub interned: &'a mut Message,
    pub names: &'a mut HashMap<String, u64>,
    pub annotations: &'a mut HashMap<&'static str, u64>,
}

impl Event<'_> {
    /// Its name, written once a block.
    pub(super) fn name(&mut self, name: &str) {
        let known = self.names.get(name).copied();
        let iid = known.unwrap_or_else(|| {
            let iid = self.names.len() as u64 + 1;
            self.names.insert(name.to_owned(), iid);
            introduce(self.interned, 2, iid, name);
            iid
        });
        self.event.uint(10, iid);
    }

    /// A name that comes only once.
    pub(super) fn text(&mut self, name: &str) {
        self.event.text(23, name);
    }

    pub(super) fn uint(&mut self, name: &'static str, value: u64) {
        self.annotate(name, |annotation| annotation.uint(3, value));
    }

    pub(super) fn flag(&mut self, name: &'static str) {
        self.annotate(name, |annotation| annotation.uint(2, 1));
    }

    /// A counter's value, whole if it is.
    pub(super) fn value(&mut self, value: f64) {
        let whole = value as i64;
        if (whole as f64).to_bits() == value.to_bits() && whole.unsigned_abs() < 1 << 53 {
            self.event.int(30, whole);
        } else {
            self.event.double(44, value);
        }
    }

    /// An arrow begins or ends here.
    pub(super) fn arrow(&mut self, number: u64, ends: bool) {
        self.event.fixed(if ends { 48 } else { 47 }, number);
    }

    fn annotate(&mut self, name: &'static str, value: impl FnOnce(&mut Message)) {
        let next = self.annotations.len() as u64 + 1;
        let iid = *self.annotations.entry(name).or_insert_with(|| {
            introduce(self.interned, 3, next, name);
            next
        });
        self.event.message(4, |annotation| {
            annotation.uint(1, iid);
            value(annotation);
        });
    }
}

fn introduce(interned: &mut Message, field: u32, iid: u64, name: &str) {
    interned.message(field, |entry| {
        entry.uint(1, iid);
        entry.text(2, name);
    });
}
