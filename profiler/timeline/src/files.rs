//! The files of a stream: segments that follow each other, the oldest of which go when `keep` says so.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{ErrorKind, IoSlice, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::listing;
use crate::record::Expired;
use crate::sync::{SyncStats, Syncer};

/// How a stream lies on the disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamOptions {
    /// Bytes after which a segment ends and the next begins.
    pub segment_bytes: u64,
    /// Bytes that this attempt of this rank may take up; its oldest segments are deleted to stay below. At least the
    /// newest segment stays, and segments are at most a quarter of it. `None`: everything is kept.
    pub keep_bytes: Option<u64>,
    /// How often what was written is made to survive a crash of the machine, by a thread of its own; `None`: only at the
    /// end. (A crash of the process alone loses nothing that was written.)
    pub sync_every: Option<Duration>,
}

impl Default for StreamOptions {
    /// 64 MB segments, all kept, synced every 5 seconds.
    fn default() -> Self {
        Self { segment_bytes: 64 << 20, keep_bytes: None, sync_every: Some(Duration::from_secs(5)) }
    }
}

/// The segments of one attempt of one rank, and the file that is being written.
#[derive(Debug)]
pub(crate) struct Files {
    directory: PathBuf,
    rank: u32,
    segment_bytes: u64,
    keep_bytes: Option<u64>,
    /// Number of the attempt's first segment.
    pub first: u32,
    pub number: u32,
    file: File,
    path: PathBuf,
    current: Part,
    /// Bytes in all segments, also in deleted ones.
    pub bytes: u64,
    /// Ended segments, oldest first; a process deletes no others.
    closed: VecDeque<(PathBuf, Part)>,
    /// To be deleted once a block on the disk says so.
    doomed: Vec<PathBuf>,
    expired: Expired,
    first_kept: u32,
    syncer: Option<Syncer>,
}

/// What a segment holds.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    bytes: u64,
    blocks: u32,
    records: u64,
}

impl Files {
    pub(crate) fn create(directory: PathBuf, rank: u32, options: &StreamOptions) -> Result<Self> {
        fs::create_dir_all(&directory).map_err(Error::io(&directory, "create it"))?;
        // Behind all that is there: numbers that `keep` has freed lie before it.
        let last = listing::segments(&directory)?.iter().filter(|s| s.rank == rank).map(|s| s.number).max();
        let (number, path, file) = next_segment(&directory, rank, last.unwrap_or(0) + 1)?;
        let most = options.keep_bytes.map_or(u64::MAX, |keep| keep / 4);
        Ok(Self {
            directory,
            rank,
            segment_bytes: options.segment_bytes.min(most),
            keep_bytes: options.keep_bytes,
            first: number,
            number,
            file,
            path,
            current: Part::default(),
            bytes: 0,
            closed: VecDeque::new(),
            doomed: Vec::new(),
            expired: Expired::default(),
            first_kept: 0,
            syncer: options.sync_every.map(Syncer::start),
        })
    }

    /// Goes on in a new segment if this one has no room for `length` more bytes; whether it did.
    pub(crate) fn make_room(&mut self, length: usize) -> Result<bool> {
        let bytes = self.current.bytes;
        if bytes == 0 || bytes + length as u64 <= self.segment_bytes {
            return Ok(false);
        }
        let (number, path, file) = next_segment(&self.directory, self.rank, self.number + 1)?;
        let old = std::mem::replace(&mut self.file, file);
        if let Some(syncer) = &mut self.syncer {
            syncer.finished(old);
        }
        self.number = number;
        self.closed.push_back((std::mem::replace(&mut self.path, path), std::mem::take(&mut self.current)));
        self.doom();
        Ok(true)
    }

    /// Writes a block of `records` records, which lies in four parts, with one write.
    pub(crate) fn write(&mut self, block: [&[u8]; 4], records: u64) -> Result<()> {
        write_all(&self.file, &block).map_err(Error::io(&self.path, "write it"))?;
        let bytes = block.iter().map(|part| part.len() as u64).sum::<u64>();
        self.current.bytes += bytes;
        self.current.blocks += 1;
        self.current.records += records;
        self.bytes += bytes;
        // What cannot be deleted now is tried again at the next block; it is in nobody's way.
        self.doomed.retain(|path| fs::remove_file(path).is_err_and(|e| e.kind() != ErrorKind::NotFound));
        if let Some(syncer) = &mut self.syncer {
            syncer.tick(&self.file);
        }
        Ok(())
    }

    /// What `keep` has taken, and the first block that it has left; `None` if it has taken nothing.
    pub(crate) fn expired(&self) -> Option<(u32, Expired)> {
        (self.expired.segments > 0).then_some((self.first_kept, self.expired))
    }

    /// Makes all of it safe, for the end.
    pub(crate) fn sync(&self) -> Result<()> {
        self.file.sync_all().map_err(Error::io(&self.path, "write it"))
    }

    pub(crate) fn sync_stats(&self) -> SyncStats {
        self.syncer.as_ref().map(Syncer::stats).unwrap_or_default()
    }

    /// Chooses what must go so that a full new segment stays within `keep`.
    fn doom(&mut self) {
        let Some(keep) = self.keep_bytes else { return };
        let mut sum: u64 = self.closed.iter().map(|(_, part)| part.bytes).sum();
        while sum + self.segment_bytes > keep {
            let Some((path, part)) = self.closed.pop_front() else { return };
            sum -= part.bytes;
            self.expired.records += part.records;
            self.expired.segments += 1;
            self.expired.bytes += part.bytes;
            self.first_kept = self.first_kept.wrapping_add(part.blocks);
            self.doomed.push(path);
        }
    }
}

/// Writes all parts behind each other: at once, if the system takes all.
fn write_all(mut file: &File, parts: &[&[u8]; 4]) -> std::io::Result<()> {
    let mut slices = parts.map(IoSlice::new);
    let mut rest = slices.as_mut_slice();
    IoSlice::advance_slices(&mut rest, 0);
    while !rest.is_empty() {
        match file.write_vectored(rest) {
            Ok(0) => return Err(ErrorKind::WriteZero.into()),
            Ok(count) => IoSlice::advance_slices(&mut rest, count),
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Creates the first segment from `number` on that does not exist.
fn next_segment(directory: &Path, rank: u32, mut number: u32) -> Result<(u32, PathBuf, File)> {
    loop {
        let path = listing::path(directory, rank, number);
        match File::options().append(true).create_new(true).open(&path) {
            Ok(file) => return Ok((number, path, file)),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => number += 1,
            Err(e) => return Err(Error::io(&path, "create it")(e)),
        }
    }
}
