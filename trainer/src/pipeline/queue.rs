//! A bounded queue between two stages: the one that is full or empty says which side limits.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// A bounded first-in-first-out queue for any number of threads on both sides.
#[derive(Debug)]
pub struct BufferedHSQueue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    capacity: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    closed: bool,
}

impl<T> BufferedHSQueue<T> {
    /// A queue of at most `capacity` items.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let state = State { items: VecDeque::with_capacity(capacity), closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), capacity }
    }

    /// Waits for room, then adds an item; returns the depth. `None` once the queue is closed: the item is dropped.
    pub fn put(&self, item: T) -> Option<usize> {
        let mut state = self.lock();
        while state.items.len() >= self.capacity && !state.closed {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.closed {
            return None;
        }
        state.items.push_back(item);
        self.changed.notify_all();
        Some(state.items.len())
    }

    /// Waits for an item, and takes it with the depth that is left. `None` once the queue is closed and empty.
    pub fn take(&self) -> Option<(T, usize)> {
        let mut state = self.lock();
        loop {
            if let Some(item) = state.items.pop_front() {
                self.changed.notify_all();
                return Some((item, state.items.len()));
            }
            if state.closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
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
        state.items.clear();
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // A thread that panicked between two statements above left the queue whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn order_is_kept_and_capacity_is_never_exceeded() {
        let queue = BufferedHSQueue::new(3);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..1000 {
                    assert!(queue.put(i).unwrap() <= 3);
                }
                queue.close();
            });
            let taken: Vec<_> = std::iter::from_fn(|| queue.take()).map(|(i, _)| i).collect();
            assert_eq!(taken, (0..1000).collect::<Vec<_>>());
        });
    }

    #[test]
    fn abandoning_wakes_a_producer_that_waits_for_room() {
        let queue = BufferedHSQueue::new(1);
        queue.put(1);
        std::thread::scope(|scope| {
            let producer = scope.spawn(|| queue.put(2));
            std::thread::sleep(Duration::from_millis(20));
            queue.abandon();
            assert_eq!(producer.join().unwrap(), None);
        });
        assert!(queue.take().is_none());
    }
}
