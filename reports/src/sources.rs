//! One or several run directories, seen as one: the ranks of a training that spans machines, or runs side by side.
//!
//! Each machine has a monotonic clock of its own. What it recorded is moved to the clock of the first run by the anchors
//! that say the date (the median of the offsets, so that one anchor in a clock step does no harm). Runs of one host share
//! a clock already. Ranks that occur twice get the next free numbers.

mod head;
mod merge;
mod part;
mod texts;

pub use self::merge::joined;

use self::head::Head;
pub use self::part::read_part;
pub(crate) use self::part::{check, part};
use self::texts::{Moving, Texts};
use crate::error::{Error, Result};
use crate::kernels::{self, Capture};
use crate::passes::{Take, Taking};
use crate::queues;
use crate::share::halves;
use crate::survey::Survey;
use crate::window::{Selection, Window};
use dflash_timeline::record::{Anchor, Sample};
use dflash_timeline::{ReadOptions, RunDir, Timeline};
use serde::Serialize;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Offsets of one host's clock that differ by less than this are noise of the date, nanoseconds.
const SAME_CLOCK_NS: u64 = 1_000_000_000;

/// Where a run stands among the others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The directory's name.
    pub run: String,
    /// The machine.
    pub host: String,
    /// Its ranks by the numbers that the report gives them.
    pub ranks: Vec<u32>,
    /// Added to its ranks, so that no two runs share one.
    pub first_rank: u32,
    /// Added to its times, to place them on the first run's clock, nanoseconds.
    pub shift_ns: i64,
    /// Whether the clock could be told; if not, its times are as good as unrelated.
    pub aligned: bool,
}

/// Several runs on one clock, to be gone through record by record.
#[derive(Debug)]
pub struct Merged {
    /// What is asked for of them.
    pub window: Window,
    /// When the recording began, monotonic nanoseconds.
    pub begin_ns: Option<i64>,
    /// When the first record of a lane began.
    pub(crate) first_ns: Option<i64>,
    /// Where each run stands, in the order in which they were named.
    pub places: Vec<Place>,
    /// What a first time through them has found.
    pub(crate) survey: Survey,
    /// Each run, and what of it is read, on its own clock.
    sources: Vec<(RunDir, ReadOptions)>,
    texts: Mutex<Texts>,
}

impl Merged {
    /// Places the runs and the selection on one clock, and goes through them once.
    ///
    /// # Errors
    /// If a run cannot be read, or the selection asks for what they do not have.
    pub(crate) fn open(runs: &[RunDir], selection: &Selection) -> Result<Self> {
        let timed = selection.last.is_some() || selection.window.is_some();
        let (mut places, mut heads): (Vec<Place>, Vec<Head>) = (Vec::new(), Vec::new());
        for run in runs {
            let head = if timed || runs.len() > 1 { Head::read(run, timed)? } else { Head::default() };
            places.push(place(run, &head, heads.first(), &places));
            heads.push(head);
        }
        let clock = head::clock(&heads, &places);
        let window = selection.place(&clock)?;
        let options = runs.iter().zip(&places).map(|(run, place)| head::options(run, &window.earlier(place.shift_ns)));
        let sources = runs.iter().cloned().zip(options.collect::<Result<Vec<_>>>()?).collect();
        let (survey, first_ns) = (Survey::default(), heads.iter().zip(&places).filter_map(head::first_ns).min());
        let (begin_ns, texts) = (clock.extent.map(|(begin, _)| begin), Mutex::default());
        let mut merged = Self { window, begin_ns, first_ns, places, survey, sources, texts };
        merged.look(timed)?;
        Ok(merged)
    }

    /// The first time through.
    fn look(&mut self, timed: bool) -> Result<()> {
        let (mine, theirs) = halves(|share| {
            let mut survey = Survey::of_share(&self.window, share);
            self.go(&mut survey).map(|()| survey)
        });
        let mut survey = mine?;
        survey.join(theirs?);
        let missing = self.with_texts(|timeline| self.window.check_lanes(timeline).is_err());
        if timed && missing {
            // Lanes that did nothing meanwhile are known from other times.
            self.go_through(&mut Everything, |_, _| ReadOptions::default())?;
        }
        if timed && self.with_texts(|timeline| queues::lacks_capacity(timeline, &survey)) {
            let begin = self.begin_ns;
            self.go_through(&mut Samples(&mut survey), |options, place| {
                head::beginning(options, begin.map(|begin| begin.saturating_sub(place.shift_ns)))
            })?;
        }
        if !timed {
            self.first_ns = survey.extent.map(|(first, _)| first);
            let anchor = self.with_texts(|timeline| timeline.anchors.first().map(|anchor| anchor.monotonic_ns));
            let begin = self.first_ns.into_iter().chain(anchor).min();
            self.begin_ns = if self.sources.len() > 1 { self.begin_ns.into_iter().chain(begin).min() } else { begin };
        }
        self.survey = survey;
        self.with_texts(|timeline| self.window.check_lanes(timeline))
    }

    /// Hands all records over, run after run.
    pub(crate) fn go(&self, take: &mut impl Take) -> Result<()> {
        let books = self.go_through(take, |options, _| options.clone())?;
        self.texts().keep(books);
        Ok(())
    }

    /// The same with other times; returns what the streams say of themselves.
    fn go_through(
        &self,
        take: &mut impl Take,
        times: impl Fn(&ReadOptions, &Place) -> ReadOptions,
    ) -> Result<Timeline> {
        let mut books = Timeline::default();
        for ((run, options), place) in self.sources.iter().zip(&self.places) {
            let mut moving = Moving::new(&self.texts, place, take);
            let timeline = dflash_timeline::visit(run, &times(options, place), &mut Taking(&mut moving))?;
            moving.account(timeline, &mut books);
        }
        Ok(books)
    }

    /// Names, lanes and counters so far, and what the streams say of themselves; without records.
    pub(crate) fn with_texts<T>(&self, look: impl FnOnce(&Timeline) -> T) -> T {
        look(&self.texts().timeline)
    }

    fn texts(&self) -> MutexGuard<'_, Texts> {
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The kernel captures of all runs.
    pub(crate) fn captures(&self) -> Result<Vec<Capture>> {
        let mut captures = Vec::new();
        for ((run, _), place) in self.sources.iter().zip(&self.places) {
            let Place { first_rank, shift_ns, .. } = *place;
            let ranks = self.window.ranks.iter().filter_map(|rank| rank.checked_sub(first_rank)).collect();
            let window = Window { ranks, ..self.window.earlier(shift_ns) };
            for mut capture in kernels::captures_of_run(run, &window)? {
                capture.lanes.iter_mut().for_each(|lane| lane.rank = lane.rank.saturating_add(first_rank));
                captures.push(capture);
            }
        }
        Ok(captures)
    }

    /// The window by date, nanoseconds since 1970, as CSV files have it.
    ///
    /// # Errors
    /// [`Error::NoDate`] if the window has an end and the timeline has no clock anchor.
    pub fn dated(&self) -> Result<Window> {
        if self.window.from_ns.is_none() && self.window.to_ns.is_none() {
            return Ok(self.window.clone());
        }
        let anchor = self.with_texts(|timeline| timeline.anchors.first().copied()).ok_or(Error::NoDate)?;
        Ok(self.window.earlier(anchor.monotonic_ns.saturating_sub(anchor.realtime_ns)))
    }

    /// Iterations of every kind in the window.
    #[must_use]
    pub fn iterations(&self) -> u64 {
        self.survey.iterations
    }
}

/// Takes nothing: what is asked for are names.
struct Everything;

impl Take for Everything {}

/// Takes readings of counters, for those that are said once.
struct Samples<'a>(&'a mut Survey);

impl Take for Samples<'_> {
    fn texts(&mut self, timeline: &Timeline) {
        self.0.texts(timeline);
    }

    fn sample(&mut self, sample: &Sample) {
        self.0.earlier_sample(sample);
    }
}

fn place(run: &RunDir, head: &Head, first: Option<&Head>, before: &[Place]) -> Place {
    let host = run.manifest().map(|manifest| manifest.host).unwrap_or_default();
    let mut own: Vec<u32> = head.books.lanes.iter().map(|lane| lane.rank).collect();
    own.extend(head.books.counters.iter().map(|counter| counter.rank));
    own.sort_unstable();
    own.dedup();
    let taken = || before.iter().flat_map(|place| &place.ranks);
    let collides = taken().any(|rank| own.contains(rank));
    let first_rank = if collides { taken().max().map_or(0, |rank| rank.saturating_add(1)) } else { 0 };
    let same_host = before.first().is_some_and(|first| !host.is_empty() && first.host == host);
    let (shift_ns, aligned) =
        first.map_or((0, true), |first| shift(&first.books.anchors, same_host, &head.books.anchors));
    let ranks = own.into_iter().map(|rank| rank.saturating_add(first_rank)).collect();
    Place { run: run.name(), host, ranks, first_rank, shift_ns, aligned }
}

/// What to add to times beside these anchors to place them on the clock of another run, and whether that is known.
fn shift(first: &[Anchor], same_host: bool, anchors: &[Anchor]) -> (i64, bool) {
    match offset(anchors).zip(offset(first)) {
        Some((own, base)) if same_host && own.abs_diff(base) < SAME_CLOCK_NS => (0, true),
        Some((own, base)) => (own.saturating_sub(base), true),
        None => (0, same_host),
    }
}

/// The median of what lies between the date and the monotonic clock.
fn offset(anchors: &[Anchor]) -> Option<i64> {
    let mut offsets: Vec<i64> =
        anchors.iter().map(|anchor| anchor.realtime_ns.saturating_sub(anchor.monotonic_ns)).collect();
    let middle = offsets.len() / 2;
    offsets.sort_unstable();
    offsets.get(middle).copied()
}
