//! The ranks of a run may be on several hosts, each with a monotonic clock of its own. A rank says in its stream how far
//! rank 0's is from its own, at its start and every minute: every reader gets its times on rank 0's clock, as if they had
//! been recorded so.
//!
//! The first reading of an attempt is added to all its times where they are decoded. What later readings say beyond that,
//! clocks that drift apart, is a line from reading to reading (see `drift.rs`), on which every record is put.

mod drift;
mod followed;
mod probe;

use std::collections::btree_map::Entry;
use std::path::Path;
use std::sync::Arc;

pub(crate) use self::drift::Drift;
pub use self::drift::Shift;
pub(crate) use self::followed::Followed;

use self::probe::{later, said};
use crate::error::Result;
use crate::format::Header;
use crate::listing::{Listed, segments};
use crate::scan::Segment;
use crate::tail::{Tail, open};

/// A segment that ends before this may be one that has only begun, bytes.
const YOUNG: u64 = 1 << 20;
/// A reader that begins near the end of a stream looks so far back for readings: more than is recorded in a minute.
const BACK: u64 = 128 << 20;
/// Of what was read before a reading came the times stay. What comes then goes over to the new line within this,
/// nanoseconds.
const OVER_NS: i64 = 10_000_000_000;

/// What is known of the clock of an attempt of a rank.
#[derive(Debug)]
pub(crate) struct Attempt {
    shift: Shift,
    /// Last time of what was read, on the clock of the first reading.
    seen_ns: Option<i64>,
    /// When the last reading was, on its own clock.
    heard_ns: Option<i64>,
    /// Looks for later readings: the number of the segment that it has come to.
    probe: Option<(u32, Segment)>,
}

impl Tail {
    /// Says to a rank's segment that is about to be read how far rank 0's clock is.
    pub(crate) fn set_clock(&mut self, one: &Listed, segment: &mut Segment) -> Result<()> {
        if one.rank == 0 {
            return Ok(());
        }
        let Some(Header { stream, .. }) = segment.first_header()? else { return Ok(()) };
        let key = (one.rank, stream);
        let attempt = match self.clocks.entry(key) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let Some(mut probe) = open(&one.path)? else { return Ok(()) };
                let found = said(&mut probe)?;
                if found.is_none() && probe.offset() < YOUNG {
                    return Ok(());
                }
                let shift = Shift::from(found.unwrap_or_default());
                place.insert(Attempt { shift, seen_ns: None, heard_ns: None, probe: None })
            }
        };
        if attempt.shift.first_ns() != 0 {
            attempt.follow(&self.directory, key, if self.from_start { u64::MAX } else { BACK })?;
            segment.set_shift(&attempt.shift);
            self.assembler.timeline.shifts.insert(one.rank, attempt.shift.clone());
        }
        Ok(())
    }

    /// Notes how far a rank's segment has been read.
    pub(crate) fn note_seen(&mut self, rank: u32, stream: u8, seen_ns: Option<i64>) {
        if let Some(attempt) = self.clocks.get_mut(&(rank, stream)) {
            attempt.seen_ns = attempt.seen_ns.max(seen_ns);
        }
    }
}

impl Attempt {
    /// Looks for readings that have come, in the last `most` bytes of the stream to begin with.
    fn follow(&mut self, directory: &Path, (rank, stream): (u32, u8), most: u64) -> Result<()> {
        let listed: Vec<Listed> = segments(directory)?.into_iter().filter(|one| one.rank == rank).collect();
        let begin = match &self.probe {
            Some((number, _)) => listed.partition_point(|one| one.number < *number),
            None => last(&listed, most),
        };
        for one in &listed[begin..] {
            if self.probe.as_ref().is_none_or(|(number, _)| *number < one.number) {
                let Some(segment) = open(&one.path)? else { continue };
                if segment.first_header()?.is_none_or(|header| header.stream != stream) {
                    continue;
                }
                self.probe = Some((one.number, segment));
            }
            let Some((_, segment)) = &mut self.probe else { continue };
            for (time_ns, offset_ns) in later(segment, self.heard_ns)? {
                self.hear(time_ns, offset_ns);
            }
        }
        Ok(())
    }

    /// A reading: on its own clock, what must be added then.
    fn hear(&mut self, time_ns: i64, offset_ns: i64) {
        let first_ns = self.shift.first_ns();
        self.heard_ns = Some(time_ns);
        let (time_ns, more_ns) = (time_ns.saturating_add(first_ns), offset_ns.saturating_sub(first_ns));
        let drift = Arc::make_mut(&mut self.shift.drift);
        match self.seen_ns.filter(|seen_ns| drift.end_ns().is_none_or(|end_ns| end_ns < *seen_ns)) {
            None => drift.push(time_ns, more_ns),
            Some(seen_ns) => {
                drift.push(seen_ns, drift.at(seen_ns).saturating_sub(seen_ns));
                drift.push(time_ns.max(seen_ns.saturating_add(OVER_NS)), more_ns);
            }
        }
    }
}

/// The place of the first of the last segments that hold so many bytes; one more than that if there is one.
fn last(listed: &[Listed], most: u64) -> usize {
    let (mut begin, mut bytes) = (listed.len(), 0);
    while begin > 0 && bytes < most {
        begin -= 1;
        bytes += std::fs::metadata(&listed[begin].path).map_or(0, |file| file.len());
    }
    begin
}
