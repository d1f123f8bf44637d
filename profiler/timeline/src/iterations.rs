//! `iterations.csv`: every iteration, stage by stage, for the whole run.
//!
//! One row per stage of an iteration (several spans of one stage are summed), then `residue` and `total`:
//!
//! | column | what |
//! |---|---|
//! | schema | version of this layout, 1 |
//! | attempt, rank, lane, device | who worked |
//! | iteration | its number on its lane, from 0 |
//! | kind | `train`, `warmup`, `checkpoint`, `eval`, `bare` |
//! | stage | `drafter.loss`, …; `residue`: what no stage covers; `total`: the iteration |
//! | start_ns | begin, nanoseconds since 1970 (of `residue`: the iteration's) |
//! | host_ns | host time, nanoseconds |
//! | device_ns | device time, nanoseconds; empty where there is none |
//! | tokens | context tokens without padding; on the row `total` alone, so that a sum counts them once |
//!
//! A value that is not known is an empty field. `schema` is a column, so that any reader of CSV takes the file.
//!
//! A long run's earlier rows stand in parts, `iterations-000001.csv.zst`, …, which keep whole microseconds; the rules
//! stand at the top of `pack.rs`. The readers here take the parts and the file as one.

mod files;
mod read;
mod write;

pub use self::files::{IterationsFile, iterations_files};
pub use self::read::{Iterations, iterations, read_iterations, read_iterations_noting};
pub use self::write::{IterationsWriter, PartOptions};

use crate::appender::known;
use crate::encode::KINDS;
use crate::error::Result;
use crate::record::Kind;
use crate::table::Row;

/// Version of iterations.csv that this crate writes.
pub const ITERATIONS_SCHEMA: u32 = 1;

/// The stage name of an iteration's own row.
pub const TOTAL: &str = "total";

/// The stage name of what no stage covers.
pub const RESIDUE: &str = "residue";

pub(crate) const COLUMNS: [&str; 12] = [
    "schema",
    "attempt",
    "rank",
    "lane",
    "device",
    "iteration",
    "kind",
    "stage",
    "start_ns",
    "host_ns",
    "device_ns",
    "tokens",
];

/// One line of iterations.csv.
#[derive(Clone, Debug, PartialEq)]
pub struct IterationRow {
    /// Version of the layout.
    pub schema: u32,
    /// Which start of the run, from 1.
    pub attempt: u32,
    /// Process of a multi-process run, from 0.
    pub rank: u32,
    /// The lane's name.
    pub lane: String,
    /// The lane's device.
    pub device: String,
    /// Number of the iteration on its lane.
    pub iteration: u64,
    /// Why it ran.
    pub kind: Kind,
    /// A stage's name, [`TOTAL`] or [`RESIDUE`].
    pub stage: String,
    /// Begin, nanoseconds since 1970.
    pub start_ns: i64,
    /// Host time.
    pub host_ns: Option<u64>,
    /// Device time.
    pub device_ns: Option<u64>,
    /// Context tokens, on the row [`TOTAL`].
    pub tokens: Option<u64>,
}

impl Default for IterationRow {
    fn default() -> Self {
        Self {
            schema: ITERATIONS_SCHEMA,
            attempt: 1,
            rank: 0,
            lane: String::new(),
            device: String::new(),
            iteration: 0,
            kind: Kind::Train,
            stage: TOTAL.to_owned(),
            start_ns: 0,
            host_ns: None,
            device_ns: None,
            tokens: None,
        }
    }
}

impl Kind {
    /// The word for it, as in iterations.csv.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Warmup => "warmup",
            Self::Checkpoint => "checkpoint",
            Self::Eval => "eval",
            Self::Bare => "bare",
            Self::Drain => "drain",
        }
    }

    /// The kind that a word names.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        KINDS.into_iter().find(|k| k.as_str() == word)
    }
}

/// A row as the fields of its line.
pub(crate) fn fields(row: &IterationRow) -> [String; 12] {
    [
        row.schema.to_string(),
        row.attempt.to_string(),
        row.rank.to_string(),
        row.lane.clone(),
        row.device.clone(),
        row.iteration.to_string(),
        row.kind.as_str().to_owned(),
        row.stage.clone(),
        row.start_ns.to_string(),
        known(row.host_ns),
        known(row.device_ns),
        known(row.tokens),
    ]
}

pub(crate) fn parse(row: &Row<'_>) -> Result<IterationRow> {
    let whole = "a whole number";
    let nanoseconds = "a whole number of nanoseconds";
    Ok(IterationRow {
        schema: row.schema(0, ITERATIONS_SCHEMA)?,
        attempt: row.number(1, whole)?,
        rank: row.number(2, whole)?,
        lane: row.text(3).to_owned(),
        device: row.text(4).to_owned(),
        iteration: row.number(5, whole)?,
        kind: Kind::parse(row.text(6)).ok_or_else(|| row.wrong(6, "one of train, warmup, checkpoint, eval, bare"))?,
        stage: row.text(7).to_owned(),
        start_ns: row.number(8, nanoseconds)?,
        host_ns: row.optional(9, nanoseconds)?,
        device_ns: row.optional(10, nanoseconds)?,
        tokens: row.optional(11, whole)?,
    })
}
