//! How a run went on over time: what the report's charts draw. Time is cut into equal pieces per lane, few enough that
//! each holds some iterations; a counter's into pieces of its own.

mod lanes;

pub use self::lanes::{LaneHistory, Piece};
use crate::error::Result;
use crate::passes::{Passes, Take, feed};
use crate::scope::Scope;
use crate::share::{Share, halves};
use crate::sources::Merged;
use crate::stages::StageTable;
use crate::survey::Survey;
use crate::window::Window;
use dflash_timeline::Timeline;
use dflash_timeline::record::{CounterId, Iteration, LaneId, Sample, Span};

/// Pieces that a counter's readings are gathered in.
const COUNTER_PIECES: usize = 160;

/// A run's course.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// What the times below count from, monotonic nanoseconds.
    pub begin_ns: i64,
    /// Lanes in the order of the stage table, those without a training iteration left out.
    pub lanes: Vec<LaneHistory>,
    /// Counters `queue.*.depth` and `gpu.*`, in the order of their first mention.
    pub counters: Vec<CounterHistory>,
}

/// A counter's course.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CounterHistory {
    /// Its name.
    pub counter: String,
    /// Its unit.
    pub unit: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// Pieces of time in which it was read.
    pub pieces: Vec<CounterPiece>,
}

/// What was read in a piece of time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CounterPiece {
    /// Its middle, nanoseconds since the begin.
    pub at_ns: i64,
    /// The plain mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl History {
    /// Goes through the window; `stages` says what to show of each lane.
    #[must_use]
    pub fn of(timeline: &Timeline, window: &Window, stages: &StageTable, begin_ns: Option<i64>) -> Self {
        let survey = Survey::of(timeline, window);
        let mut gathering = Gathering::new(timeline, window, &survey, stages, Share::ALL);
        feed(timeline, &mut gathering);
        gathering.finish(timeline, begin_ns)
    }

    /// Goes through the runs once more.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub(crate) fn of_runs(merged: &Merged, stages: &StageTable) -> Result<Self> {
        let (mine, theirs) = halves(|share| {
            let mut gathering =
                merged.with_texts(|timeline| Gathering::new(timeline, &merged.window, &merged.survey, stages, share));
            merged.go(&mut gathering).map(|()| gathering)
        });
        let mut mine = mine?;
        mine.join(theirs?);
        Ok(merged.with_texts(|timeline| mine.finish(timeline, merged.begin_ns)))
    }
}

/// The courses so far.
struct Gathering {
    share: Share,
    scope: Scope,
    passes: Passes,
    lanes: lanes::Lanes,
    counters: Vec<Option<Pieces>>,
}

impl Gathering {
    fn new(timeline: &Timeline, window: &Window, survey: &Survey, stages: &StageTable, share: Share) -> Self {
        let drawn = |name: &str| name.starts_with("gpu.") || name.starts_with("queue.") && name.ends_with(".depth");
        let counters = timeline.counters.iter().zip(&survey.counters).map(|(counter, own)| {
            let (first, last) = own.times.filter(|_| drawn(&counter.name) && window.has_rank(counter.rank))?;
            Some(Pieces { cut: Cut::new(first, last, COUNTER_PIECES), pieces: Vec::new() })
        });
        let (scope, passes, counters) = (Scope::new(window), Passes::default(), counters.collect());
        Self { share, scope, passes, lanes: lanes::Lanes::new(timeline, survey, stages), counters }
    }

    /// Takes over the lanes of the other worker.
    fn join(&mut self, other: Self) {
        self.lanes.join(other.lanes, other.share);
    }

    fn has(&self, lane: LaneId) -> bool {
        self.share.has(lane) && self.scope.has_lane(lane)
    }

    fn finish(self, timeline: &Timeline, begin_ns: Option<i64>) -> History {
        let begin_ns = begin_ns.unwrap_or(0);
        let counters = timeline.counters.iter().zip(self.counters).filter_map(|(counter, pieces)| {
            let pieces = pieces?.finish(begin_ns);
            let (name, unit, rank) = (counter.name.clone(), counter.unit.clone(), counter.rank);
            (!pieces.is_empty()).then_some(CounterHistory { counter: name, unit, rank, pieces })
        });
        let counters = counters.collect();
        History { begin_ns, lanes: self.lanes.finish(begin_ns), counters }
    }
}

impl Take for Gathering {
    fn texts(&mut self, timeline: &Timeline) {
        self.scope.texts(timeline);
    }

    fn wants(&self, lane: LaneId) -> bool {
        self.has(lane)
    }

    #[inline(always)]
    fn span(&mut self, span: &Span) {
        if self.has(span.lane) {
            self.passes.span(span);
        }
    }

    fn iteration(&mut self, iteration: &Iteration) {
        let wanted = self.has(iteration.lane);
        let Self { scope, passes, lanes, .. } = self;
        if wanted {
            passes.iteration(iteration, |iteration, spans| {
                if scope.has_end(iteration) {
                    lanes.add(iteration, spans);
                }
            });
        }
    }

    fn sample(&mut self, sample: &Sample) {
        let CounterId(id) = sample.counter;
        if self.share.is_first()
            && let Some(Some(pieces)) = self.counters.get_mut(id as usize)
            && self.scope.has_time(sample.time_ns)
            && sample.value.is_finite()
        {
            pieces.add(sample);
        }
    }
}

/// A counter's readings by piece of time.
struct Pieces {
    cut: Cut,
    /// With the number of readings.
    pieces: Vec<(u64, CounterPiece)>,
}

impl Pieces {
    fn add(&mut self, sample: &Sample) {
        let at = self.cut.piece(sample.time_ns);
        if at >= self.pieces.len() {
            self.pieces.resize(at + 1, (0, CounterPiece::default()));
        }
        let ((count, piece), value) = (&mut self.pieces[at], sample.value);
        if *count == 0 {
            (piece.min, piece.max) = (value, value);
        }
        *count += 1;
        piece.mean += (value - piece.mean) / *count as f64;
        (piece.min, piece.max) = (piece.min.min(value), piece.max.max(value));
    }

    fn finish(self, begin_ns: i64) -> Vec<CounterPiece> {
        let cut = self.cut;
        let pieces = self.pieces.into_iter().enumerate().filter(|(_, (count, _))| *count > 0);
        pieces
            .map(|(at, (_, piece))| CounterPiece { at_ns: cut.middle(at).saturating_sub(begin_ns), ..piece })
            .collect()
    }
}

/// A stretch of time in equal pieces.
#[derive(Clone, Copy, Debug)]
struct Cut {
    from_ns: i64,
    width_ns: u64,
    pieces: usize,
}

impl Cut {
    fn new(from_ns: i64, to_ns: i64, pieces: usize) -> Self {
        let length = to_ns.saturating_sub(from_ns).max(1).unsigned_abs();
        Self { from_ns, width_ns: length.div_ceil(pieces.max(1) as u64).max(1), pieces: pieces.max(1) }
    }

    fn piece(&self, ns: i64) -> usize {
        let since = u64::try_from(ns.saturating_sub(self.from_ns)).unwrap_or(0);
        usize::try_from(since / self.width_ns).unwrap_or(usize::MAX).min(self.pieces - 1)
    }

    fn begin(&self, piece: usize) -> i64 {
        self.from_ns.saturating_add_unsigned(self.width_ns.saturating_mul(piece as u64))
    }

    fn middle(&self, piece: usize) -> i64 {
        self.begin(piece).saturating_add_unsigned(self.width_ns / 2)
    }
}
