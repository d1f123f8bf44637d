//! Everything that `dflash report` says about a run, gathered once; the forms below print it.

mod csv;
mod facts;
mod markdown;
mod table;

pub use self::csv::{STAGES_HEADER, stages_csv};
pub(crate) use self::facts::number;
pub use self::facts::{BareLane, Cost, RunFacts, Throughput};
pub(crate) use self::markdown::escaped;
pub use self::markdown::markdown;
pub use self::table::table;

use crate::error::Result;
use crate::queues::{self, QueueRow};
use crate::stages::{StageTable, Window, stage_table};
use crate::verdict::{Verdict, verdict};
use dflash_timeline::record::Totals;
use dflash_timeline::{RunDir, Timeline};
use serde::Serialize;

/// Version of the JSON form.
pub const SCHEMA: u32 = 1;

/// A run in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// Version of this form.
    pub schema: u32,
    /// What the manifest says; `None` of a bare timeline.
    pub run: Option<RunFacts>,
    /// Tokens and time.
    pub throughput: Throughput,
    /// Which side limits.
    pub verdict: Verdict,
    /// The verdict as a sentence.
    pub verdict_text: String,
    /// Where each lane's time went.
    pub stages: StageTable,
    /// How full the queues were.
    pub queues: Vec<QueueRow>,
    /// What was lost.
    pub losses: Losses,
    /// What the profiler itself cost.
    pub profiler: Cost,
}

/// What was recorded, what was lost, and whether the stream is whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Losses {
    /// Counts by the writer.
    pub totals: Totals,
    /// Spans that the reader could not place.
    pub strays: u64,
    /// Iterations whose stages last longer than they do.
    pub overfull: u64,
    /// Every rank's stream has its end.
    pub ended: bool,
    /// Damaged blocks.
    pub bad_blocks: u64,
    /// Bytes skipped over.
    pub skipped_bytes: u64,
    /// One line per damage.
    pub problems: Vec<String>,
}

impl Report {
    /// Gathers the report of a part of a timeline.
    ///
    /// # Errors
    /// [`Error::NoSuchLane`](crate::Error::NoSuchLane) if the window asks for a lane that the timeline does not have.
    pub fn of(timeline: &Timeline, window: &Window) -> Result<Self> {
        window.check_lanes(timeline)?;
        let stages = stage_table(timeline, window);
        let verdict = verdict(&stages);
        Ok(Self {
            schema: SCHEMA,
            run: None,
            throughput: Throughput::of(&stages),
            verdict_text: verdict.to_string(),
            verdict,
            queues: queues::queues(timeline, window),
            losses: Losses {
                totals: timeline.totals,
                strays: stages.strays,
                overfull: stages.lanes.iter().map(|lane| lane.overfull).sum(),
                ended: timeline.health.ended,
                bad_blocks: timeline.health.bad_blocks,
                skipped_bytes: timeline.health.skipped_bytes,
                problems: timeline.health.problems.clone(),
            },
            profiler: Cost::of(timeline, window, &stages),
            stages,
        })
    }

    /// Reads a run's timeline and manifest.
    ///
    /// # Errors
    /// If either cannot be read, or as [`Report::of`].
    pub fn of_run(run: &RunDir, window: &Window) -> Result<Self> {
        let timeline = dflash_timeline::read(run)?;
        Ok(Self { run: Some(RunFacts::of(run)?), ..Self::of(&timeline, window)? })
    }

    /// The report as one JSON object. A number that is not known is `null`.
    ///
    /// # Errors
    /// If serialising fails.
    pub fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}
