//! A ring that any number of handlers fill and one reader empties, without a lock: a bounded queue whose places carry
//! the number of the lap that may use them.

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::record::Sample;

pub(super) struct Ring {
    places: Box<[Place]>,
    /// Places claimed so far, over all laps.
    claimed: AtomicUsize,
    /// Places read so far, over all laps.
    read: AtomicUsize,
}

struct Place {
    /// 2 x lap: free for that lap; 2 x lap + 1: filled in it.
    turn: AtomicUsize,
    sample: UnsafeCell<Sample>,
}

// SAFETY: a place's sample is touched by the one handler that claimed it, while its turn says "free", and by the one
// reader, while its turn says "filled"; the turn is handed on with release and taken with acquire.
unsafe impl Sync for Ring {}
// SAFETY: it owns what it holds, and none of it belongs to a thread.
unsafe impl Send for Ring {}

impl Ring {
    /// A ring of `size` places. Their memory is taken from the system page by page, when a lap first reaches it.
    pub(super) fn new(size: usize) -> Self {
        Self { places: zeroed(size), claimed: AtomicUsize::new(0), read: AtomicUsize::new(0) }
    }

    /// Lets `fill` write the next free place; `false`: the ring is full. For handlers: never waits.
    pub(super) fn push(&self, fill: impl FnOnce(&mut Sample)) -> bool {
        loop {
            let at = self.claimed.load(Ordering::Relaxed);
            let (lap, place) = (at / self.places.len(), &self.places[at % self.places.len()]);
            let turn = place.turn.load(Ordering::Acquire);
            if turn < 2 * lap {
                return false;
            }
            let free = turn == 2 * lap;
            if free && self.claimed.compare_exchange(at, at + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                // SAFETY: this call alone claimed `at`, and the reader leaves the place alone until the turn is odd.
                fill(unsafe { &mut *place.sample.get() });
                place.turn.store(2 * lap + 1, Ordering::Release);
                return true;
            }
        }
    }

    /// Shows the oldest sample to `use_it`; `false`: there is none, or its handler still writes it. Only one thread may
    /// call this at a time, which the callers see to.
    pub(super) fn pop(&self, use_it: impl FnOnce(&Sample)) -> bool {
        let at = self.read.load(Ordering::Relaxed);
        let (lap, place) = (at / self.places.len(), &self.places[at % self.places.len()]);
        if place.turn.load(Ordering::Acquire) != 2 * lap + 1 {
            return false;
        }
        // SAFETY: the turn is odd, so its writer is done; no other reader runs.
        use_it(unsafe { &*place.sample.get() });
        place.turn.store(2 * (lap + 1), Ordering::Release);
        self.read.store(at + 1, Ordering::Relaxed);
        true
    }
}

/// All zeroes: fresh memory, which costs nothing before it is used.
fn zeroed(size: usize) -> Box<[Place]> {
    let Ok(layout) = Layout::array::<Place>(size.max(1)) else { handle_alloc_error(Layout::new::<Place>()) };
    // SAFETY: the layout's size is not 0.
    let memory = unsafe { alloc_zeroed(layout) };
    if memory.is_null() {
        handle_alloc_error(layout);
    }
    // SAFETY: the memory was allocated with the layout of so many places, nobody else has it, and a place of zeroes is
    // valid: numbers, arrays of numbers, and an enum whose first variant is 0.
    unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(memory.cast::<Place>(), size.max(1))) }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::Ring;

    #[test]
    fn a_full_ring_refuses_and_goes_on_after_a_read() {
        let ring = Ring::new(3);
        for lap in 0..5 {
            for tid in 0..3 {
                assert!(ring.push(|sample| sample.tid = lap * 3 + tid));
            }
            assert!(!ring.push(|_| panic!("there is no room")));
            for tid in 0..3 {
                assert!(ring.pop(|sample| assert_eq!(sample.tid, lap * 3 + tid)));
            }
            assert!(!ring.pop(|_| panic!("there is nothing")));
        }
    }

    #[test]
    fn many_writers_lose_nothing_unsaid() {
        let ring = Ring::new(8);
        let (pushed, refused, done) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let mut sums = (0, 0);
        std::thread::scope(|scope| {
            for writer in 0..4_u32 {
                let (ring, pushed, refused, done) = (&ring, &pushed, &refused, &done);
                scope.spawn(move || {
                    for number in 0..5_000 {
                        let fill = |sample: &mut super::Sample| {
                            sample.tid = writer;
                            sample.time_ns = number;
                        };
                        if ring.push(fill) { pushed } else { refused }.fetch_add(1, Ordering::Relaxed);
                    }
                    done.fetch_add(1, Ordering::Release);
                });
            }
            let mut last = [-1; 4];
            loop {
                let over = done.load(Ordering::Acquire) == 4;
                while ring.pop(|sample| {
                    let writer = &mut last[sample.tid as usize];
                    assert!(*writer < sample.time_ns, "a writer's samples stay in order");
                    *writer = sample.time_ns;
                    sums.0 += 1;
                }) {}
                if over {
                    break;
                }
            }
        });
        sums.1 = pushed.load(Ordering::Relaxed);
        assert_eq!(sums.0, sums.1);
        assert_eq!(sums.1 + refused.load(Ordering::Relaxed), 20_000);
    }
}
