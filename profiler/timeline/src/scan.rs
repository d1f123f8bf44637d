//! Blocks out of a segment's file, whatever happened to it.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::decode::{Block, decode};
use crate::error::{Error, Result};
use crate::format::{self, Frame, HEADER, Header, LONGEST, MAGIC, VERSION};

/// Bytes looked at together; any block fits in.
const WINDOW: usize = LONGEST + HEADER + (1 << 20);

/// What stood in a segment.
#[derive(Debug)]
pub(crate) enum Found {
    /// A block.
    Block(Header, Box<Block>),
    /// Bytes that are none, up to the next block.
    Skipped { at: u64, bytes: u64 },
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
}

impl Segment {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(Error::io(path, "read it"))?;
        Ok(Self { path: path.to_owned(), file, offset: 0, left_over: 0 })
    }

    /// Where the next block begins.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Reads what has come since the last call. Damage is skipped only once a whole block stands behind it.
    pub(crate) fn poll(&mut self, found: &mut impl FnMut(Found)) -> Result<()> {
        loop {
            let bytes = self.window()?;
            let at_end = bytes.len() < WINDOW;
            let (used, step) = self.whole_blocks(&bytes, found)?;
            let rest = &bytes[used..];
            self.offset += used as u64;
            self.left_over = rest.len() as u64;
            if rest.is_empty() && at_end {
                return Ok(());
            }
            if !at_end && used > 0 {
                continue;
            }
            // Here is no block, or one that the file ends in: go on with the next, if there is one.
            let skip = match step.or_else(|| next_block(rest)) {
                Some(skip) => skip,
                None if at_end => return Ok(()),
                None => rest.len() - (LONGEST + HEADER),
            };
            found(Found::Skipped { at: self.offset, bytes: skip as u64 });
            self.offset += skip as u64;
        }
    }

    /// Hands out the blocks at the begin of `bytes`. Returns their length, and that of a sound block that cannot be
    /// decoded if that is what ended the row.
    fn whole_blocks(&self, bytes: &[u8], found: &mut impl FnMut(Found)) -> Result<(usize, Option<usize>)> {
        let mut used = 0;
        while let Frame::Whole(header) = format::look(&bytes[used..]) {
            if header.version > VERSION {
                let (version, known) = (u32::from(header.version), u32::from(VERSION));
                return Err(Error::TooNew { path: self.path.clone(), version, known });
            }
            let end = HEADER + header.length as usize;
            let payload = &bytes[used + HEADER..used + end];
            let plain = header.codec == 0 && header.raw_length == header.length;
            match decode(payload, header.records).filter(|_| plain) {
                Some(block) => found(Found::Block(header, Box::new(block))),
                None => return Ok((used, Some(end))),
            }
            used += end;
        }
        Ok((used, None))
    }

    fn window(&self) -> Result<Vec<u8>> {
        let length = self.file.metadata().map_err(Error::io(&self.path, "read it"))?.len();
        let size = usize::try_from(length.saturating_sub(self.offset)).unwrap_or(WINDOW).min(WINDOW);
        let mut bytes = vec![0; size];
        let mut filled = 0;
        while filled < size {
            match self.file.read_at(&mut bytes[filled..], self.offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io(&self.path, "read it")(e)),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

/// Distance to the next whole block, which is not at the begin of `bytes`.
fn next_block(bytes: &[u8]) -> Option<usize> {
    let magic = |at: &usize| bytes[*at..].starts_with(&MAGIC);
    (1..bytes.len()).filter(magic).find(|at| matches!(format::look(&bytes[*at..]), Frame::Whole(_)))
}
