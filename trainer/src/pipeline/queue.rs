//! A bounded queue between two stages: the one that is full or empty says which side limits.
//!
//! It is bounded in items and in bytes. In strict order what comes too early waits in it: then room for one item, the
//! largest there is, is kept free for the one that everybody waits for. That is why it neither grows nor gets stuck.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A bounded queue for any number of threads on both sides.
#[derive(Debug)]
pub struct BufferedHSQueue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    room: Room,
    strict: bool,
}

/// How much a queue holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Items.
    pub items: usize,
    /// Bytes of all items. A single item may have more: it is let in when the queue is empty.
    pub bytes: u64,
    /// Bytes of the largest item that will come, kept free in strict order.
    pub largest: u64,
}

/// What a queue holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depth {
    /// Items.
    pub items: usize,
    /// Their bytes.
    pub bytes: u64,
}

#[derive(Debug)]
struct State<T> {
    /// By their number in strict order, else by their arrival.
    items: BTreeMap<u64, (T, u64)>,
    bytes: u64,
    closed: bool,
    arrived: u64,
    /// The first number that never came, and those behind it that did.
    missing: u64,
    early: BTreeSet<u64>,
    /// The number that each taker is to get next.
    next: Vec<u64>,
}

impl Room {
    /// Room for so many items of any size.
    #[must_use]
    pub fn items(items: usize) -> Self {
        Self { items, bytes: u64::MAX, largest: 0 }
    }
}

impl<T> BufferedHSQueue<T> {
    /// A queue whose items leave it in the order of their arrival, to whoever asks.
    #[must_use]
    pub fn arrival(room: Room) -> Self {
        Self::new(room, false, 0, 1)
    }

    /// A queue whose items leave it by their numbers, from `first` on: of `takers` takers the i-th gets the numbers
    /// first + i, first + i + takers, …. Every number must come, and the takers must work in step: none takes its next item
    /// before each has taken its last one.
    #[must_use]
    pub fn strict(room: Room, first: u64, takers: usize) -> Self {
        Self::new(room, true, first, takers)
    }

    fn new(room: Room, strict: bool, first: u64, takers: usize) -> Self {
        let state = State {
            items: BTreeMap::new(),
            bytes: 0,
            closed: false,
            arrived: 0,
            missing: first,
            early: BTreeSet::new(),
            next: (first..).take(takers).collect(),
        };
        Self { state: Mutex::new(state), changed: Condvar::new(), room, strict }
    }

    /// Waits for room, then adds item `number` of so many bytes; returns what the queue holds then. `None` once the
    /// queue is closed: the item is dropped.
    pub fn put(&self, number: u64, item: T, bytes: u64) -> Option<Depth> {
        let mut state = self.lock();
        while !state.closed && !self.has_room(&state, number, bytes) {
            state = self.wait(state);
        }
        if state.closed {
            return None;
        }
        let key = if self.strict { number } else { state.arrived };
        state.arrived += 1;
        state.came(number);
        state.bytes += bytes;
        state.items.insert(key, (item, bytes));
        self.changed.notify_all();
        Some(state.depth())
    }

    fn has_room(&self, state: &State<T>, number: u64, bytes: u64) -> bool {
        let Room { items, bytes: most, largest } = self.room;
        if self.strict && number != state.missing {
            let reserved = state.bytes.saturating_add(bytes).saturating_add(largest);
            return state.items.len() + 1 < items && reserved <= most;
        }
        state.items.is_empty() || (state.items.len() < items && state.bytes.saturating_add(bytes) <= most)
    }

    /// Waits for the item that this taker is to get, and takes it; returns also what is left. `None` once the queue is
    /// closed and the item does not come any more.
    pub fn take(&self, taker: usize) -> Option<(T, Depth)> {
        let mut state = self.lock();
        loop {
            let key = if self.strict { Some(state.next[taker]) } else { state.items.keys().next().copied() };
            if let Some((item, bytes)) = key.and_then(|key| state.items.remove(&key)) {
                state.bytes -= bytes;
                if self.strict {
                    let takers = state.next.len() as u64;
                    state.next[taker] += takers;
                }
                self.changed.notify_all();
                return Some((item, state.depth()));
            }
            if state.closed {
                return None;
            }
            state = self.wait(state);
        }
    }

    /// No more items come: what is in the queue can still be taken.
    pub fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_all();
    }

    /// Closes and drops what is in the queue: nobody wants it any more.
    pub fn abandon(&self) {
        let mut state = self.lock();
        state.closed = true;
        let dropped = std::mem::take(&mut state.items);
        state.bytes = 0;
        self.changed.notify_all();
        drop(state);
        // Items may be large: nobody waits for the lock meanwhile.
        drop(dropped);
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // A thread that panicked between two statements above left the queue whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State<T>>) -> MutexGuard<'a, State<T>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    fn depth(&self) -> Depth {
        Depth { items: self.items.len(), bytes: self.bytes }
    }

    fn came(&mut self, number: u64) {
        self.early.insert(number);
        while self.early.remove(&self.missing) {
            self.missing += 1;
        }
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
