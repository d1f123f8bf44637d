//! A stream gone through on two threads: each decodes all of it, and looks at half of the lanes.

use dflash_timeline::record::LaneId;
use std::thread;

/// Which lanes a worker looks at. What belongs to no lane is one worker's, too.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    first: u32,
    /// One worker, or two.
    of: u32,
}

impl Default for Share {
    fn default() -> Self {
        Self::ALL
    }
}

impl Share {
    pub(crate) const ALL: Self = Self { first: 0, of: 1 };

    /// Lanes of one kind often have every second number, or follow each other: by the parity of a number's bits each
    /// worker gets half of them either way.
    #[inline]
    pub(crate) fn has(self, LaneId(lane): LaneId) -> bool {
        lane.count_ones() % 2 % self.of == self.first
    }

    /// Whether the worker takes readings of counters, marks and stacks.
    #[inline]
    pub(crate) fn is_first(self) -> bool {
        self.first == 0
    }

    /// Whether the worker takes hand-offs: as much work again, so that each does about half.
    #[inline]
    pub(crate) fn is_last(self) -> bool {
        self.first + 1 == self.of
    }
}

/// Does both halves of some work, side by side.
pub(crate) fn halves<T: Send>(work: impl Fn(Share) -> T + Sync) -> (T, T) {
    let half = |first| work(Share { first, of: 2 });
    thread::scope(|scope| {
        let other = thread::Builder::new().spawn_scoped(scope, || half(1)).ok();
        let mine = half(0);
        // Where there was no thread, or it ended badly, which the work gives no cause for, its half is done here.
        (mine, other.and_then(|thread| thread.join().ok()).unwrap_or_else(|| half(1)))
    })
}
