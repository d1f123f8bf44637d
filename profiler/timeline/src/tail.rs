//! Following a run's timing stream while it is being written.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use crate::assemble::Assembler;
use crate::clock::Attempt;
use crate::error::{Error, Result};
use crate::listing::{Listed, segments};
use crate::part::Window;
use crate::run_dir::RunDir;
use crate::scan::{Batch, Segment, TAIL};
use crate::timeline::Timeline;

/// How often segments may vanish during one reading before it goes on with what there is.
const LISTINGS: u32 = 16;

/// Bytes before its end at which reading of a rank's stream begins at the latest: two of the longest blocks that are
/// written.
const LEAST: u64 = 128 << 10;

/// Follows a run while it is being written: each [`poll`](Self::poll) adds what has come.
#[derive(Debug)]
pub struct Tail {
    pub(crate) directory: PathBuf,
    /// The segment being read of each rank, with its number.
    pub(crate) current: BTreeMap<u32, (u32, Segment)>,
    pub(crate) assembler: Assembler,
    window_ns: Option<u64>,
    only: Option<Window>,
    pub(crate) from_start: bool,
    /// How far before the end of a rank's stream reading begins.
    pub(crate) reach: u64,
    /// Clocks of attempts; of the ranks above 0 whose streams were looked through for it.
    pub(crate) clocks: BTreeMap<(u32, u8), Attempt>,
    pub(crate) buffer: Vec<u8>,
}

/// What is done with a batch of a rank's segment.
pub(crate) type Take<'a> = dyn FnMut(&mut Assembler, &Path, u32, &Batch<'_>, Option<Window>) + 'a;

impl Tail {
    /// Prepares to follow a run. Nothing is read before the first [`poll`](Self::poll), which begins about a megabyte
    /// before the end of the stream, of several ranks all together: the first picture of a long run is there within
    /// milliseconds.
    pub fn open(run: &RunDir) -> Result<Self> {
        Ok(Self {
            directory: run.timeline_dir(),
            current: BTreeMap::new(),
            assembler: Assembler::default(),
            window_ns: None,
            only: None,
            from_start: false,
            reach: TAIL,
            clocks: BTreeMap::new(),
            buffer: Vec::new(),
        })
    }

    /// Reads the whole stream, from its start.
    #[must_use]
    pub fn from_start(mut self) -> Self {
        self.from_start = true;
        self
    }

    /// Keeps only what ended within the last `ns` nanoseconds of the stream, so that memory stays bounded.
    #[must_use]
    pub fn with_window(mut self, ns: u64) -> Self {
        self.window_ns = Some(ns);
        self
    }

    pub(crate) fn only(mut self, window: Option<Window>) -> Self {
        self.only = window;
        self
    }

    /// Reads what was added since the last call; whether there was something.
    pub fn poll(&mut self) -> Result<bool> {
        if let Some(ns) = self.window_ns {
            return self.poll_keeping(|_| ns);
        }
        let news = self.read_new(&mut |assembler, path, rank, batch, window| {
            assembler.add(path, rank, batch, window);
        })?;
        if news {
            self.assembler.settle();
        }
        Ok(news)
    }

    /// The same, but `window` says after each megabyte or so how many nanoseconds before the newest record to keep: a
    /// reader that was stopped for an hour has much to catch up with, and must not fill the memory meanwhile.
    pub fn poll_keeping(&mut self, mut window: impl FnMut(&Timeline) -> u64) -> Result<bool> {
        let news = self.read_new(&mut |assembler, path, rank, batch, only| {
            assembler.add(path, rank, batch, only);
            if assembler.has_much_new() {
                keep(assembler, &mut window);
            }
        })?;
        if news {
            keep(&mut self.assembler, &mut window);
        }
        Ok(news)
    }

    /// What has been read so far.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        &self.assembler.timeline
    }

    /// Hands what is new to `take`; whether there was something.
    pub(crate) fn read_new(&mut self, take: &mut Take<'_>) -> Result<bool> {
        let mut news = false;
        for _ in 0..LISTINGS {
            // Listed before reading: a segment with a successor in this list is complete.
            let listed = segments(&self.directory)?;
            self.say_vanished(&listed);
            let ranks = listed.chunk_by(|a, b| a.rank == b.rank).count() as u64;
            self.reach = (TAIL / ranks.max(1)).max(LEAST);
            let mut vanished = false;
            for of_rank in listed.chunk_by(|a, b| a.rank == b.rank) {
                let (some, gone) = self.read_rank(of_rank, take)?;
                news |= some;
                vanished |= gone;
            }
            if !vanished {
                break;
            }
        }
        Ok(news)
    }

    /// What was read, at the end of a reading that is not followed by another.
    pub(crate) fn finish(mut self) -> Timeline {
        for (_, (_, segment)) in std::mem::take(&mut self.current) {
            self.say_torn_end(&segment);
        }
        self.assembler.settle();
        if self.assembler.timeline.lanes.is_empty() && !self.assembler.timeline.health.ended {
            self.assembler.problem(format!("{}: nothing was recorded", self.directory.display()));
        }
        self.assembler.timeline
    }

    /// Reads what is new of a rank's segments. Returns whether there was something, and whether a segment vanished.
    fn read_rank(&mut self, listed: &[Listed], take: &mut Take<'_>) -> Result<(bool, bool)> {
        let Some(rank) = listed.first().map(|first| first.rank) else { return Ok((false, false)) };
        let (mut news, mut vanished) = (false, false);
        let begin = if self.from_start || self.current.contains_key(&rank) { 0 } else { self.attach(listed, take)? };
        for one @ Listed { number, path, .. } in &listed[begin.min(listed.len())..] {
            let current = self.current.get(&rank).map(|(current, _)| *current);
            if current.is_some_and(|current| current > *number) {
                continue;
            }
            if current != Some(*number) {
                let Some(segment) = open(path)? else {
                    vanished = true;
                    continue;
                };
                if let Some((_, finished)) = self.current.insert(rank, (*number, segment)) {
                    self.say_torn_end(&finished);
                }
            }
            news |= self.read_segment(one, take)?;
        }
        Ok((news, vanished))
    }

    pub(crate) fn read_segment(&mut self, one: &Listed, take: &mut Take<'_>) -> Result<bool> {
        let rank = one.rank;
        let Some((number, mut segment)) = self.current.remove(&rank) else { return Ok(false) };
        let clock = self.set_clock(one, &mut segment);
        self.current.insert(rank, (number, segment));
        clock?;
        let Some((_, segment)) = self.current.get_mut(&rank) else { return Ok(false) };
        let mut news = false;
        while let Some(batch) = segment.next(&mut self.buffer, self.only)? {
            let path = segment.path.clone();
            take(&mut self.assembler, &path, rank, &batch, self.only);
            news = true;
        }
        if let (true, Some(header)) = (rank > 0, segment.first_header()?) {
            let seen_ns = segment.seen_ns;
            self.note_seen(rank, header.stream, seen_ns);
        }
        Ok(news)
    }

    pub(crate) fn say_torn_end(&mut self, segment: &Segment) {
        if segment.left_over > 0 {
            self.assembler.torn(&segment.path, segment.offset(), segment.left_over);
        }
    }

    /// A newest segment that is no longer there was not deleted by `keep`.
    fn say_vanished(&mut self, listed: &[Listed]) {
        let newest = |rank: u32| listed.iter().filter(|l| l.rank == rank).map(|l| l.number).max();
        let gone: Vec<u32> =
            self.current.iter().filter(|(rank, (own, _))| newest(**rank) < Some(*own)).map(|(rank, _)| *rank).collect();
        for rank in gone {
            if let Some((_, segment)) = self.current.remove(&rank) {
                self.assembler.problem(format!("{}: vanished while it was read", segment.path.display()));
            }
        }
    }
}

/// Puts what came in order, and forgets what is too old.
fn keep(assembler: &mut Assembler, window: &mut impl FnMut(&Timeline) -> u64) {
    assembler.settle();
    let ns = window(&assembler.timeline);
    if let Some(newest) = assembler.newest_ns {
        assembler.forget_before(newest.saturating_sub_unsigned(ns));
    }
}

/// Opens a segment; `None` if it has vanished.
pub(crate) fn open(path: &Path) -> Result<Option<Segment>> {
    match Segment::open(path) {
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some),
    }
}
