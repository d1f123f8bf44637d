//! What a stream says of itself: what is open, what became of what was recorded.

use serde::{Deserialize, Serialize};

use super::{LaneId, NameId};

/// What became of what one lane (thread) recorded. `emitted = written + dropped`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneTotals {
    /// The lane.
    pub lane: LaneId,
    /// Records that it made.
    pub emitted: u64,
    /// Of those, in the stream.
    pub written: u64,
    /// Of those, lost.
    pub dropped: u64,
}

/// A span that had begun but not ended when its block was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenSpan {
    /// Its name.
    pub name: NameId,
    /// Its lane.
    pub lane: LaneId,
    /// Begin, monotonic nanoseconds.
    pub begin_ns: i64,
}

/// What became of everything that was recorded. `emitted = written + dropped`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// Records that the lanes made.
    pub emitted: u64,
    /// Records in the stream.
    pub written: u64,
    /// Records lost because a ring was full or the disk failed.
    pub dropped: u64,
    /// Spans still open at the end.
    pub open: u64,
    /// Spans whose clock ran backwards (recorded with duration 0).
    pub negative: u64,
    /// Device times that never came.
    pub unresolved: u64,
    /// Spans that ended out of order or on another thread (not recorded).
    pub misplaced: u64,
}

/// What was deleted because `keep` bounds the recording. It had been written, and counts as written; it is not lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expired {
    /// Records.
    pub records: u64,
    /// Segments.
    pub segments: u64,
    /// Bytes.
    pub bytes: u64,
}
