//! Blocks out of a segment's file, whatever happened to it.

mod block;
mod pass;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use self::pass::passes;
use crate::clock::{Drift, Shift};
use crate::decode::PADDING;
use crate::error::{Error, Result};
use crate::format::{self, Frame, HEADER, Header, LONGEST, MAGIC, VERSION};
use crate::part::{Window, cores};

/// Bytes that are read together for each core that decodes: they stay in its cache.
const SHARE: usize = 256 << 10;
/// At most so many in all.
const CHUNK: usize = 8 << 20;
/// Bytes that are read together where a chunk does not do: any block fits in.
const WIDE: usize = LONGEST + HEADER + (1 << 20);
/// The end of a segment that is always read: what it says of the whole stream is there.
pub(crate) const TAIL: u64 = 1 << 20;

/// What stood in a segment, in order.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    /// The bytes that were read, and padding.
    pub bytes: &'a [u8],
    pub found: Vec<Found>,
    /// What is added to its times beyond their blocks' shift.
    pub drift: Option<Arc<Drift>>,
}

/// One thing in a segment.
#[derive(Debug)]
pub(crate) enum Found {
    /// A block whose checksum holds; it begins at this place of the batch's bytes.
    Block { header: Header, at: usize },
    /// The header of a block that lies outside of the times asked for; the rest of it was not looked at.
    Passed(Header),
    /// Bytes that are no block, up to the next one.
    Skipped { at: u64, bytes: u64 },
    /// The file has become shorter than what was read of it.
    Shrunk { from: u64, to: u64 },
}

/// One segment, read from its begin to where its last whole block ends.
///
/// Read with pread and never mapped: a file that shrinks must not kill the reader.
#[derive(Debug)]
pub(crate) struct Segment {
    pub path: PathBuf,
    file: File,
    offset: u64,
    /// Bytes behind the last whole block: one that is being written, or torn.
    pub left_over: u64,
    /// Reading began in the middle: what comes before the first block is no damage.
    attaching: bool,
    shrunk: bool,
    /// From its clock to rank 0's (see `clock.rs`).
    shift: Shift,
    /// Last time of the blocks that were read, on the clock of the first reading.
    pub seen_ns: Option<i64>,
}

impl Segment {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io(path, "read it"))?;
        let (shift, seen_ns) = (Shift::default(), None);
        Ok(Self {
            path: path.to_owned(),
            file,
            offset: 0,
            left_over: 0,
            attaching: false,
            shrunk: false,
            shift,
            seen_ns,
        })
    }

    /// What is added to its times from now on.
    pub(crate) fn set_shift(&mut self, shift: &Shift) {
        self.shift = shift.clone();
    }

    fn drift(&self) -> Option<Arc<Drift>> {
        (!self.shift.drift.is_none()).then(|| Arc::clone(&self.shift.drift))
    }

    /// Where the next block begins.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Goes on with the last `bytes` of the file.
    pub(crate) fn attach(&mut self, bytes: u64) -> Result<()> {
        self.offset = self.length()?.saturating_sub(bytes);
        self.attaching = self.offset > 0;
        Ok(())
    }

    /// What stands at the place that was reached, a chunk of it; `None`: nothing yet. Damage is skipped only
    /// once a whole block stands behind it. Blocks outside of `window` are passed by, save those at the file's end.
    pub(crate) fn next<'a>(&mut self, buffer: &'a mut Vec<u8>, window: Option<Window>) -> Result<Option<Batch<'a>>> {
        let mut found = Vec::new();
        if self.has_shrunk(&mut found)? {
            return Ok((!found.is_empty()).then_some(Batch { bytes: &[], found, drift: None }));
        }
        if let Some(window) = window {
            self.pass_by(window, &mut found)?;
        }
        let mut at_end = self.read(buffer, chunk())?;
        let mut used = self.whole_blocks(buffer, window, &mut found)?;
        if used == 0 && !at_end {
            // No block in this reach: perhaps one that is longer.
            at_end = self.read(buffer, WIDE)?;
            used = self.whole_blocks(buffer, window, &mut found)?;
        }
        if used == 0 {
            used = self.skip(buffer, at_end, &mut found);
        }
        self.offset += used as u64;
        self.left_over = (buffer.len() - used) as u64;
        if used == 0 && found.is_empty() {
            return Ok(None);
        }
        buffer.resize(buffer.len() + PADDING, 0);
        Ok(Some(Batch { bytes: buffer, found, drift: self.drift() }))
    }

    /// Here is no block, or one that the file ends in: the length up to the next one, if there is one.
    fn skip(&self, buffer: &[u8], at_end: bool, found: &mut Vec<Found>) -> usize {
        let length = match next_block(buffer) {
            Some(length) => length,
            None if at_end => return 0,
            None => buffer.len() - (LONGEST + HEADER),
        };
        if !self.attaching {
            found.push(Found::Skipped { at: self.offset, bytes: length as u64 });
        }
        length
    }

    /// Finds the blocks at the begin of `bytes`, and returns their length.
    fn whole_blocks(&mut self, bytes: &[u8], window: Option<Window>, found: &mut Vec<Found>) -> Result<usize> {
        let (mut used, length) = (0, self.length()?);
        while let Frame::Whole(header) = format::look(&bytes[used..]) {
            if header.version > VERSION {
                if used > 0 {
                    break;
                }
                let (version, known) = (u32::from(header.version), u32::from(VERSION));
                return Err(Error::TooNew { path: self.path.clone(), version, known });
            }
            self.attaching = false;
            self.seen_ns = self.seen_ns.max(Some(header.last_ns.saturating_add(self.shift.first_ns())));
            let header = header.moved(&self.shift);
            let passed = window.is_some_and(|window| passes(&header, window, self.offset + used as u64, length));
            found.push(if passed { Found::Passed(header) } else { Found::Block { header, at: used } });
            used += HEADER + header.length as usize;
        }
        Ok(used)
    }

    fn has_shrunk(&mut self, found: &mut Vec<Found>) -> Result<bool> {
        let (from, to) = (self.offset, self.length()?);
        if to < from && !self.shrunk {
            self.shrunk = true;
            found.push(Found::Shrunk { from, to });
        }
        Ok(to < from)
    }

    /// Length of the file now.
    pub(crate) fn length(&self) -> Result<u64> {
        Ok(self.file.metadata().map_err(Error::io(&self.path, "read it"))?.len())
    }

    /// Fills the buffer with what comes next; whether the file ends there.
    fn read(&self, buffer: &mut Vec<u8>, most: usize) -> Result<bool> {
        let left = self.length()?.saturating_sub(self.offset);
        buffer.resize(usize::try_from(left).unwrap_or(most).min(most), 0);
        let filled = self.fill(buffer, self.offset)?;
        buffer.truncate(filled);
        Ok(filled < most)
    }

    /// Reads what there is at a place; how much that was.
    fn fill(&self, bytes: &mut [u8], at: u64) -> Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.file.read_at(&mut bytes[filled..], at + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io(&self.path, "read it")(e)),
            }
        }
        Ok(filled)
    }
}

/// Bytes that are read together. The longest block that is written is about a quarter of it.
fn chunk() -> usize {
    (cores() * SHARE).min(CHUNK)
}

/// Distance to the next whole block, which is not at the begin of `bytes`.
fn next_block(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.get(1..)?;
    let magic = |(at, window): (usize, &[u8])| (window == MAGIC).then_some(at + 1);
    let places = rest.windows(MAGIC.len()).enumerate().filter_map(magic);
    places.into_iter().find(|at| matches!(format::look(&bytes[*at..]), Frame::Whole(_)))
}
