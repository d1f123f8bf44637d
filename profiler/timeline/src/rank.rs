//! Where a rank's stream stands: what it says of itself, and which blocks of it are missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::format::Header;
use crate::record::{Expired, LaneId, LaneTotals, OpenSpan, Totals};
use crate::timeline::Health;
use crate::visit::Account;

/// The stream of a rank, attempt after attempt.
#[derive(Debug, Default)]
pub(crate) struct Rank {
    attempt: Attempt,
    /// Sums of earlier attempts.
    totals: Totals,
    lanes: BTreeMap<LaneId, LaneTotals>,
    expired: Expired,
    /// Blocks that no reading found.
    gaps: Vec<Gap>,
}

/// What one attempt has said so far.
#[derive(Debug, Default)]
struct Attempt {
    /// Of the header of the last block.
    stream: u8,
    next: Next,
    /// Damaged stretches since the last good block.
    damaged: u64,
    ended: bool,
    open: Vec<OpenSpan>,
    totals: Totals,
    lanes: BTreeMap<LaneId, LaneTotals>,
    expired: Expired,
    /// First block that `keep` has left.
    first_kept: u32,
    /// First time of the first block that was seen.
    first_ns: Option<i64>,
}

/// Sequence number that the next block must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Next {
    /// The first one of an attempt.
    #[default]
    First,
    /// Any: the reader goes on elsewhere.
    Any,
    /// This one.
    At(u32),
}

/// Blocks that are missing before one that is there.
#[derive(Debug)]
struct Gap {
    /// The segment of the block behind the gap.
    path: PathBuf,
    from: u32,
    to: u32,
    /// Of these, so many were damaged, and said to be.
    damaged: u64,
    /// What `keep` had left when the attempt had ended; `None`: it is the attempt that is being read.
    first_kept: Option<u32>,
}

impl Rank {
    /// The reader goes on elsewhere, by choice: what lies between is not missing.
    pub(crate) fn jump(&mut self) {
        self.attempt.next = Next::Any;
    }

    /// Something that is no block stands where blocks should.
    pub(crate) fn damaged(&mut self) {
        self.attempt.damaged += 1;
    }

    /// A block has come. Notices blocks that are missing without a trace.
    pub(crate) fn block(&mut self, path: &Path, header: &Header) {
        self.begin_attempt(header);
        let attempt = &mut self.attempt;
        if attempt.first_ns.is_none() && header.last_ns != 0 {
            attempt.first_ns = Some(header.first_ns);
        }
        let damaged = std::mem::take(&mut attempt.damaged);
        let expected = std::mem::replace(&mut attempt.next, Next::At(header.sequence.wrapping_add(1)));
        attempt.ended = header.end;
        if let Next::At(from) = expected
            && from != header.sequence
        {
            self.gaps.push(Gap { path: path.to_owned(), from, to: header.sequence, damaged, first_kept: None });
        }
    }

    /// What a block says of the stream.
    pub(crate) fn account(&mut self, account: Account) {
        let attempt = &mut self.attempt;
        match account {
            Account::Open(open) => attempt.open = open,
            Account::Totals(totals) => attempt.totals = totals,
            Account::Lane(totals) => _ = attempt.lanes.insert(totals.lane, totals),
            Account::Expired(first_kept, expired) => (attempt.first_kept, attempt.expired) = (first_kept, expired),
        }
    }

    /// Says which blocks are missing, now that all is read that there is. Not those that `keep` has deleted.
    pub(crate) fn say_gaps(&mut self, health: &mut Health) {
        let now_kept = self.attempt.first_kept;
        for Gap { path, from, to, damaged, first_kept } in self.gaps.drain(..) {
            if to < from {
                health.bad_blocks += 1;
                health.problems.push(format!("{}: block {to} stands behind block {from}", path.display()));
                continue;
            }
            let from = from.max(first_kept.unwrap_or(now_kept).min(to));
            let missing = u64::from(to - from).saturating_sub(damaged);
            if missing > 0 {
                health.bad_blocks += missing;
                let last = to - 1;
                health.problems.push(format!("{}: blocks {from} to {last} are not all there", path.display()));
            }
        }
    }

    pub(crate) fn ended(&self) -> bool {
        self.attempt.ended
    }

    pub(crate) fn open(&self) -> &[OpenSpan] {
        &self.attempt.open
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals.plus(&self.attempt.totals)
    }

    /// Each lane's totals, of each attempt.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = &LaneTotals> {
        self.lanes.values().chain(self.attempt.lanes.values())
    }

    pub(crate) fn expired(&self) -> Expired {
        self.expired.plus(&self.attempt.expired)
    }

    /// Since when there is detail, if `keep` has deleted some.
    pub(crate) fn detail_from_ns(&self) -> Option<i64> {
        self.attempt.first_ns.filter(|_| self.attempt.expired.segments > 0)
    }

    /// Notices that a block belongs to the next attempt of a resumed run.
    fn begin_attempt(&mut self, header: &Header) {
        let other_stream = self.attempt.stream != header.stream;
        let new = match self.attempt.next {
            Next::First => false,
            Next::Any => other_stream,
            Next::At(next) => other_stream || (header.sequence == 0 && next != 0),
        };
        if new {
            let ended = std::mem::take(&mut self.attempt);
            // Excused by what the ended attempt said of itself, not by the next one.
            self.gaps.iter_mut().for_each(|gap| _ = gap.first_kept.get_or_insert(ended.first_kept));
            self.totals = self.totals.plus(&ended.totals);
            self.expired = self.expired.plus(&ended.expired);
            add_lanes(&mut self.lanes, ended.lanes.into_values());
            if ended.next == Next::Any {
                self.attempt.next = Next::Any;
            }
        }
        if self.attempt.next == Next::First {
            // Streams of version 1 did not say what was deleted of them.
            self.attempt.next = if header.version >= 2 { Next::At(0) } else { Next::Any };
        }
        self.attempt.stream = header.stream;
    }
}

/// Adds totals to those of the same lane.
pub(crate) fn add_lanes(sums: &mut BTreeMap<LaneId, LaneTotals>, more: impl Iterator<Item = LaneTotals>) {
    for totals in more {
        let nothing = LaneTotals { emitted: 0, written: 0, dropped: 0, ..totals };
        let sum = sums.entry(totals.lane).or_insert(nothing);
        sum.emitted = sum.emitted.saturating_add(totals.emitted);
        sum.written = sum.written.saturating_add(totals.written);
        sum.dropped = sum.dropped.saturating_add(totals.dropped);
    }
}

impl Totals {
    /// The sum of two streams' totals.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            emitted: self.emitted.saturating_add(other.emitted),
            written: self.written.saturating_add(other.written),
            dropped: self.dropped.saturating_add(other.dropped),
            open: self.open.saturating_add(other.open),
            negative: self.negative.saturating_add(other.negative),
            unresolved: self.unresolved.saturating_add(other.unresolved),
            misplaced: self.misplaced.saturating_add(other.misplaced),
        }
    }
}

impl Expired {
    /// The sum of what was deleted of two streams.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            records: self.records.saturating_add(other.records),
            segments: self.segments.saturating_add(other.segments),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }
}
