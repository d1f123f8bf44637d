//! The stage table: where each lane's time went. Every view takes its numbers from here.
//!
//! Only iterations of kind `train` are averaged; the others are counted beside them. Several spans of a stage in one
//! iteration are summed first, so that every statistic is about *a stage's time per iteration in which it ran*.
//! A lane's stages and its residue add up to its total; nested spans are parts of the stage that they stand below.

mod gather;
mod hint;
mod node;

pub(crate) use self::gather::Gathered;
pub use self::hint::Hint;
pub(crate) use self::hint::{is_sync, is_wait};
use crate::stats::Stats;
pub use crate::walk::Window;
use dflash_timeline::Timeline;
pub use dflash_timeline::iterations::{RESIDUE, TOTAL};
use dflash_timeline::record::Kind;
use serde::Serialize;

/// The pipeline's roles, in the order in which one feeds the next.
pub const ROLES: [&str; 4] = ["loader", "target", "post", "drafter"];

/// Where the time went, lane by lane: by rank, along the pipeline, then by number.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StageTable {
    /// One table per lane that recorded an iteration in the window.
    pub lanes: Vec<LaneTable>,
    /// Spans that found no place, because the record of their iteration or of the span around them was lost (or, in
    /// a running training, is not written yet).
    pub strays: u64,
}

/// Where one lane's time went.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LaneTable {
    /// `drafter:0`, ….
    pub lane: String,
    /// `cpu`, `cuda:0`, ….
    pub device: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// Iterations of kind `train`; all that follows is about them, unless it says otherwise.
    pub iterations: u64,
    /// Iterations of other kinds, not averaged in.
    pub set_apart: Vec<SetApart>,
    /// Host time of whole iterations.
    pub total: Stats,
    /// Device time of the iterations' stages together, over the iterations in which none of those that have one lacks it.
    pub total_device: Option<Stats>,
    /// Stages in order of first use, each followed by what is nested in it; `residue` last.
    pub rows: Vec<StageRow>,
    /// CPU time of the lane's own thread ÷ wall time.
    pub cpu_share: Option<f64>,
    /// Context tokens that were processed. Bare iterations are training too: they count here.
    pub tokens: Option<u64>,
    /// Begin of the first and end of the last iteration, bare ones included, monotonic nanoseconds.
    pub extent_ns: Option<(i64, i64)>,
    /// Of the time between the two, that of evaluations.
    #[serde(skip)]
    pub evaluating_ns: u64,
    /// Iterations whose stages last longer than they do: clocks or records are wrong there.
    pub overfull: u64,
}

/// Iterations of one kind that were left out of the statistics.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SetApart {
    /// Which kind.
    pub kind: Kind,
    /// How many.
    pub iterations: u64,
    /// How long they took together.
    pub total_ns: u64,
    /// The median of their durations.
    pub p50_ns: u64,
}

/// One stage, one kind of nested span, or the residue.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StageRow {
    /// Its name.
    pub stage: String,
    /// 0 for a stage and the residue, more for what is nested.
    pub depth: u8,
    /// Name of the span around it; `None` for a stage.
    pub parent: Option<String>,
    /// Number of spans; several may fall into one iteration.
    pub spans: u64,
    /// Host time per iteration in which it ran.
    pub host: Stats,
    /// Device time per iteration in which every span of it has one (short stages: every k-th iteration only).
    pub device: Option<Stats>,
    /// Host time ÷ that of all the lane's iterations.
    pub share: f64,
    /// What host and device time say together.
    pub hint: Option<Hint>,
}

impl LaneTable {
    /// The row of a stage or of the residue.
    #[must_use]
    pub fn stage(&self, name: &str) -> Option<&StageRow> {
        self.rows.iter().find(|row| row.depth == 0 && row.stage == name)
    }

    /// The lane's name up to the colon: `target` for `target:1`.
    #[must_use]
    pub fn role(&self) -> &str {
        self.lane.split(':').next().unwrap_or(&self.lane)
    }

    /// Share of the time spent in stages whose name ends with `suffix`.
    pub(crate) fn share_of(&self, suffix: &str) -> f64 {
        self.rows.iter().filter(|row| row.depth == 0 && row.stage.ends_with(suffix)).map(|row| row.share).sum()
    }
}

/// Computes the stage table of a part of a timeline, in one pass over its records.
#[must_use]
pub fn stage_table(timeline: &Timeline, window: &Window) -> StageTable {
    gather::gather(timeline, window)
}
