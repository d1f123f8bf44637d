//! How a run went on over time: what the report's charts draw. Time is cut into equal pieces per lane, few enough that
//! each holds some iterations; a counter's into pieces of its own.

mod lanes;

pub use self::lanes::{LaneHistory, Piece};
use crate::counters::series;
use crate::stages::StageTable;
use crate::window::Window;
use dflash_timeline::Timeline;
use dflash_timeline::record::Sample;

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
    /// Goes through the window once; `stages` says what to show of each lane.
    #[must_use]
    pub fn of(timeline: &Timeline, window: &Window, stages: &StageTable, begin_ns: Option<i64>) -> Self {
        let begin_ns = begin_ns.unwrap_or(0);
        let lanes = lanes::lanes(timeline, window, stages, begin_ns);
        let drawn = |name: &str| name.starts_with("gpu.") || name.starts_with("queue.") && name.ends_with(".depth");
        let counters = series(timeline, window, |counter| drawn(&counter.name).then_some(()));
        let counters = counters.into_iter().map(|(counter, (), samples)| CounterHistory {
            counter: counter.name.clone(),
            unit: counter.unit.clone(),
            rank: counter.rank,
            pieces: pieces(&samples, begin_ns),
        });
        Self { begin_ns, lanes, counters: counters.collect() }
    }
}

/// Samples are sorted by time, so those of a piece stand together.
fn pieces(samples: &[Sample], begin_ns: i64) -> Vec<CounterPiece> {
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return Vec::new() };
    let cut = Cut::new(first.time_ns, last.time_ns, COUNTER_PIECES);
    let together = samples.chunk_by(|a, b| cut.piece(a.time_ns) == cut.piece(b.time_ns));
    let piece = |samples: &[Sample]| {
        let values = || samples.iter().map(|sample| sample.value);
        CounterPiece {
            at_ns: cut.middle(cut.piece(samples[0].time_ns)).saturating_sub(begin_ns),
            mean: values().map(|value| value / samples.len() as f64).sum(),
            min: values().fold(f64::INFINITY, f64::min),
            max: values().fold(f64::NEG_INFINITY, f64::max),
        }
    };
    together.map(piece).collect()
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
