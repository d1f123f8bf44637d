//! Where a trace's content comes from: a timeline in memory, or a run's files, which are gone through piece by piece, so
//! that a recording of any length is exported in bounded memory.
//!
//! A first time through a run learns what must be known beforehand: lanes, names, hand-offs (both ends, to pair them),
//! marks, and how dense the recording is. Then come its pieces: stretches of time that hold about so many records.

use super::reach::Reach;
use crate::error::Result;
use crate::sources::{check, part};
use crate::window::{Selection, Window};
use dflash_timeline::record::{CounterId, LaneId, NameId, StreamId};
use dflash_timeline::{ReadOptions, RunDir, Timeline, read_with, visit};
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::Hash;

/// Records of a piece, about: some 100 MB of memory. Hand-offs are held of the whole recording beside it.
const PIECE: u64 = 1 << 18;

/// What is exported.
#[derive(Debug)]
pub struct Source<'a> {
    /// All that is known of the recording as a whole. Of a run in files without spans, iterations and readings.
    head: Cow<'a, Timeline>,
    pub(super) reach: Reach,
    files: Option<Files>,
}

#[derive(Debug)]
struct Files {
    run: RunDir,
    options: ReadOptions,
    piece: u64,
}

/// A stretch of time with what begins in it.
pub(super) struct Piece<'a> {
    /// What it holds, and more: [`begins`](Self::begins) tells. Ids are those of the whole.
    pub timeline: &'a Timeline,
    from_ns: Option<i64>,
    /// Its end; `None` of the last one.
    pub to_ns: Option<i64>,
}

impl Piece<'_> {
    /// Whether what begins then is this piece's.
    pub(super) fn begins(&self, ns: i64) -> bool {
        self.from_ns.is_none_or(|from| ns >= from) && self.to_ns.is_none_or(|to| ns < to)
    }
}

impl<'a> Source<'a> {
    /// A timeline in memory.
    #[must_use]
    pub fn memory(timeline: &'a Timeline) -> Self {
        Self { head: Cow::Borrowed(timeline), reach: Reach::of(timeline), files: None }
    }

    /// What a selection asks for of a run, with some time before it for what reaches in; and the selection on its clock.
    ///
    /// # Errors
    /// If the run cannot be read, or lacks what is asked for.
    pub fn open(run: &RunDir, selection: &Selection) -> Result<(Self, Window)> {
        let (window, options) = part(run, selection)?;
        let mut reach = Reach::default();
        let books = visit(run, &options, &mut reach)?;
        check(run, &books, &window)?;
        let head = Cow::Owned(reach.head(books));
        let files = Some(Files { run: run.clone(), options, piece: PIECE });
        Ok((Self { head, reach, files }, window))
    }

    /// The same with so many records a piece.
    #[must_use]
    pub fn in_pieces_of(mut self, records: u64) -> Self {
        self.files.iter_mut().for_each(|files| files.piece = records.max(1));
        self
    }

    /// What is known of the recording as a whole.
    #[must_use]
    pub fn head(&self) -> &Timeline {
        &self.head
    }

    /// Whether it is read from files, and was looked through once already.
    pub(super) fn is_file(&self) -> bool {
        self.files.is_some()
    }

    /// Hands the recording to `take` piece by piece, in the order of time.
    pub(super) fn pieces(&self, mut take: impl FnMut(&Piece<'_>) -> Result<()>) -> Result<()> {
        let Some(files) = &self.files else {
            return take(&Piece { timeline: &self.head, from_ns: None, to_ns: None });
        };
        let ids = Ids::of(&self.head);
        let mut from_ns = None;
        for to_ns in self.reach.cuts(files.piece).into_iter().map(Some).chain([None]) {
            let options =
                ReadOptions { from_ns: from_ns.or(files.options.from_ns), to_ns: to_ns.or(files.options.to_ns) };
            let mut timeline = read_with(&files.run, &options)?;
            ids.apply(&mut timeline);
            take(&Piece { timeline: &timeline, from_ns, to_ns })?;
            from_ns = to_ns;
        }
        Ok(())
    }
}

/// Each piece is read by itself, and numbers names, lanes, streams and counters as they come.
struct Ids<'a> {
    names: HashMap<&'a str, u32>,
    head: &'a Timeline,
}

impl<'a> Ids<'a> {
    fn of(head: &'a Timeline) -> Self {
        Self { names: head.names.iter().map(String::as_str).zip(0..).collect(), head }
    }

    /// Gives everything in a piece the numbers of the whole. What is not in the whole has come since, and has none.
    fn apply(&self, piece: &mut Timeline) {
        const NONE: u32 = u32::MAX;
        let names: Vec<u32> =
            piece.names.iter().map(|name| self.names.get(name.as_str()).copied().unwrap_or(NONE)).collect();
        let streams = places(&piece.streams, &self.head.streams);
        let (lanes, counters) = (places(&piece.lanes, &self.head.lanes), places(&piece.counters, &self.head.counters));
        let new = |map: &[u32], id: u32| map.get(id as usize).copied().unwrap_or(NONE);
        for span in &mut piece.spans {
            (span.name, span.lane) = (NameId(new(&names, span.name.0)), LaneId(new(&lanes, span.lane.0)));
            if let Some(stream) = span.device.as_mut().and_then(|device| device.stream.as_mut()) {
                *stream = StreamId(new(&streams, stream.0));
            }
        }
        piece.iterations.iter_mut().for_each(|iteration| iteration.lane = LaneId(new(&lanes, iteration.lane.0)));
        piece.samples.iter_mut().for_each(|sample| sample.counter = CounterId(new(&counters, sample.counter.0)));
        piece.spans.sort_by_key(|span| span.lane);
        piece.iterations.sort_by_key(|iteration| iteration.lane);
    }
}

/// Where each of `some` stands in `all`.
fn places<T: Eq + Hash>(some: &[T], all: &[T]) -> Vec<u32> {
    let known: HashMap<&T, u32> = all.iter().zip(0..).collect();
    some.iter().map(|one| known.get(one).copied().unwrap_or(u32::MAX)).collect()
}
