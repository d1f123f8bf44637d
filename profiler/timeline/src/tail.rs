//! Reading a run's timing stream, once or while it is being written.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::assemble::Assembler;
use crate::error::{Error, Result};
use crate::run_dir::RunDir;
use crate::scan::{Found, Segment};
use crate::timeline::Timeline;

/// Reads everything that a run recorded, of all ranks and segments.
///
/// Damage is no error: it is skipped, and [`Timeline::health`] says what and where. A stream that does not end with an
/// END block has `health.ended == false`.
pub fn read(run: &RunDir) -> Result<Timeline> {
    let mut tail = Tail::open(run)?;
    tail.poll()?;
    tail.say_torn_ends();
    Ok(tail.assembler.timeline)
}

/// Follows a run while it is being written: each [`poll`](Self::poll) adds what has come.
#[derive(Debug)]
pub struct Tail {
    directory: PathBuf,
    /// The segment being read of each rank, with its number.
    current: BTreeMap<u32, (u32, Segment)>,
    assembler: Assembler,
    window_ns: Option<u64>,
}

impl Tail {
    /// Prepares to follow a run. Nothing is read before the first [`poll`](Self::poll).
    pub fn open(run: &RunDir) -> Result<Self> {
        let (directory, assembler) = (run.timeline_dir(), Assembler::default());
        Ok(Self { directory, current: BTreeMap::new(), assembler, window_ns: None })
    }

    /// Keeps only what ended within the last `ns` nanoseconds of the stream, so that memory stays bounded.
    #[must_use]
    pub fn with_window(mut self, ns: u64) -> Self {
        self.window_ns = Some(ns);
        self
    }

    /// Reads what was added since the last call; whether there was something.
    pub fn poll(&mut self) -> Result<bool> {
        let mut news = false;
        // Listed before reading: a segment with a successor in this list is complete.
        for (rank, number, path) in segments(&self.directory)? {
            let current = self.current.get(&rank).map(|(current, _)| *current);
            if current.is_some_and(|current| current > number) {
                continue;
            }
            if current != Some(number) {
                let segment = match Segment::open(&path) {
                    Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => continue,
                    opened => opened?,
                };
                if let Some((_, finished)) = self.current.insert(rank, (number, segment)) {
                    self.say_torn_end(&finished);
                }
            }
            news |= self.read_segment(rank)?;
        }
        if news {
            self.assembler.settle();
        }
        Ok(news)
    }

    /// What has been read so far.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.assembler.timeline
    }

    fn read_segment(&mut self, rank: u32) -> Result<bool> {
        let Some((_, segment)) = self.current.get_mut(&rank) else { return Ok(false) };
        let (path, before) = (segment.path.clone(), segment.offset());
        let (assembler, window) = (&mut self.assembler, self.window_ns);
        let mut blocks = 0_u64;
        segment.poll(&mut |found: Found| {
            assembler.add(&path, rank, found);
            blocks += 1;
            // Forgetting looks at everything, so not after each block.
            if blocks.is_multiple_of(256) {
                forget(assembler, window);
            }
        })?;
        let news = segment.offset() > before;
        if news {
            forget(assembler, window);
        }
        Ok(news)
    }

    fn say_torn_ends(&mut self) {
        for (_, (_, segment)) in std::mem::take(&mut self.current) {
            self.say_torn_end(&segment);
        }
        if self.assembler.timeline.lanes.is_empty() && !self.assembler.timeline.health.ended {
            let text = format!("{}: nothing was recorded", self.directory.display());
            self.assembler.timeline.health.problems.push(text);
        }
    }

    fn say_torn_end(&mut self, segment: &Segment) {
        if segment.left_over > 0 {
            self.assembler.torn(&segment.path, segment.offset(), segment.left_over);
        }
    }
}

fn forget(assembler: &mut Assembler, window_ns: Option<u64>) {
    if let (Some(window), Some(newest)) = (window_ns, assembler.newest_ns) {
        assembler.forget_before(newest.saturating_sub_unsigned(window));
    }
}

/// Rank, number and path of the segments in a directory, in that order.
fn segments(directory: &Path) -> Result<Vec<(u32, u32, PathBuf)>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(Error::io(directory, "list it")(e)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let path = entry.map_err(Error::io(directory, "list it"))?.path();
        let numbers = path.file_name().and_then(|name| segment_numbers(name.to_str()?));
        found.extend(numbers.map(|(rank, number)| (rank, number, path)));
    }
    found.sort();
    Ok(found)
}

/// `rank0-000001.dft` as (0, 1).
fn segment_numbers(name: &str) -> Option<(u32, u32)> {
    let (rank, number) = name.strip_prefix("rank")?.strip_suffix(".dft")?.split_once('-')?;
    Some((rank.parse().ok()?, number.parse().ok()?))
}
