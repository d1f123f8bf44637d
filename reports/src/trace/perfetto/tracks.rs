//! Tracks: a process per rank, below it a thread per lane, GPUs with what ran on each of their streams, hand-offs and counters.
//!
//! A track's number says what it is, so that no two ranks' tracks can meet: rank + 1 in bits 48 and up, the sort in bits
//! 44-47, which one in bits 16-43, the slot in bits 0-15.

use crate::trace::proto::Message;

const PROCESS: u64 = 1;
const LANE: u64 = 2;
const GPU: u64 = 3;
const STREAM: u64 = 4;
const COUNTER: u64 = 5;
const HAND_OFF: u64 = 6;
const MARKS: u64 = 7;

/// Children in the order of their ranks.
const EXPLICIT: u64 = 3;

/// Number of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Uuid(pub u64);

impl Uuid {
    fn new(rank: u32, sort: u64, which: usize) -> Self {
        Self((u64::from(rank) + 1) << 48 | sort << 44 | (which as u64 & 0x0fff_ffff) << 16)
    }

    pub(super) fn process(rank: u32) -> Self {
        Self::new(rank, PROCESS, 0)
    }

    pub(super) fn lane(rank: u32, lane: usize) -> Self {
        Self::new(rank, LANE, lane)
    }

    pub(super) fn gpu(rank: u32, device: usize) -> Self {
        Self::new(rank, GPU, device)
    }

    pub(super) fn stream(rank: u32, which: usize) -> Self {
        Self::new(rank, STREAM, which)
    }

    pub(super) fn counter(rank: u32, counter: usize) -> Self {
        Self::new(rank, COUNTER, counter)
    }

    pub(super) fn hand_off(rank: u32, which: usize) -> Self {
        Self::new(rank, HAND_OFF, which)
    }

    /// Of the run as a whole.
    pub(super) fn marks() -> Self {
        Self(MARKS << 44)
    }

    /// One of the tracks on which overlapping slices of this one stand; slot 0 is the track itself.
    pub(super) fn slot(self, slot: usize) -> Self {
        Self(self.0 | slot as u64 & 0xffff)
    }
}

/// A rank's process.
pub(super) fn process(track: &mut Message, rank: u32, name: &str) {
    track.uint(1, Uuid::process(rank).0);
    track.message(3, |process| {
        process.uint(1, u64::from(rank) + 1);
        process.text(6, name);
    });
    track.uint(11, EXPLICIT);
    track.uint(12, u64::from(rank));
}

/// A lane's thread. Its number is not its system's: that one is not recorded.
pub(super) fn lane(track: &mut Message, rank: u32, lane: usize, name: &str) {
    track.uint(1, Uuid::lane(rank, lane).0);
    track.uint(5, Uuid::process(rank).0);
    track.message(4, |thread| {
        thread.uint(1, u64::from(rank) + 1);
        thread.uint(2, lane as u64 + 1_000);
        thread.text(5, name);
    });
    track.uint(12, lane as u64);
}

/// A track without a thread, below another one.
pub(super) fn below(track: &mut Message, uuid: Uuid, parent: Uuid, name: &str, order: u64) {
    track.uint(1, uuid.0);
    track.uint(5, parent.0);
    track.text(2, name);
    track.uint(11, EXPLICIT);
    track.uint(12, order);
}

/// A track of the run as a whole.
pub(super) fn marks(track: &mut Message) {
    track.uint(1, Uuid::marks().0);
    track.text(2, "marks");
}

/// A counter's track.
pub(super) fn counter(track: &mut Message, uuid: Uuid, parent: Uuid, name: &str, unit: &str, order: u64) {
    track.uint(1, uuid.0);
    track.uint(5, parent.0);
    track.text(2, name);
    track.message(8, |counter| counter.text(6, unit));
    track.uint(12, order);
}
