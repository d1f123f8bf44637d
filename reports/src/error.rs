//! What can go wrong with a report, with the way out.

use std::io;
use std::path::PathBuf;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Every failure of this crate.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A run or one of its files could not be read.
    #[error(transparent)]
    Timeline(#[from] dflash_timeline::Error),
    /// The operating system said no.
    #[error("{}: cannot read it: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Writing a report into memory or a stream failed.
    #[error("cannot write the report: {0}")]
    Write(#[from] io::Error),
    /// Writing CSV failed.
    #[error("cannot write CSV: {0}")]
    Csv(#[from] csv::Error),
    /// Writing JSON failed.
    #[error("cannot write JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// There is nothing to draw.
    #[error("no finished iteration was recorded{which}; wait until the run has done one, or look at another run")]
    NothingRecorded {
        /// ` on lane x`, or nothing.
        which: String,
    },
    /// No span has a device time.
    #[error(
        "no device time was recorded{which}; only spans with a CUDA stream have one: look at the wall time (--time wall)"
    )]
    NothingTimed {
        /// ` on lane x`, or nothing.
        which: String,
    },
    /// No stack was sampled.
    #[error(
        "no CPU sample was recorded{which}; sampling is off unless it is asked for: start it with `dflash ctl cpu`"
    )]
    NothingSampled {
        /// ` on lane x`, or nothing.
        which: String,
    },
    /// A lane that does not exist was asked for.
    #[error("there is no lane `{lane}`; the run has {known}")]
    NoSuchLane {
        /// The name that was given.
        lane: String,
        /// Those there are.
        known: String,
    },
    /// A rank that does not exist was asked for.
    #[error("there is no rank {rank}; the run has {known}")]
    NoSuchRank {
        /// The rank that was given.
        rank: u32,
        /// Those there are.
        known: String,
    },
    /// A date cannot be placed on the recording's clock.
    #[error(
        "the recording has no clock anchor, so dates mean nothing in it; give a time since the run's start, as 30s..2m"
    )]
    NoDate,
    /// A file is neither kind of CSV report.
    #[error(
        "{}: neither iterations.csv nor stages.csv: its columns are `{header}`; give a run directory, its \
         iterations.csv, or a stages.csv of `dflash report --format csv`", path.display()
    )]
    NotAReport {
        /// The file.
        path: PathBuf,
        /// Its first line.
        header: String,
    },
    /// A file is empty, or holds nothing but a header.
    #[error("{}: {what}; a run writes its rows when an iteration ends", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
        /// `the file is empty`, ….
        what: &'static str,
    },
    /// A column is missing.
    #[error("{}:1: column `{column}` is missing; write the file anew with `dflash report --format csv`", path.display())]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: &'static str,
    },
    /// A field cannot be understood.
    #[error("{}:{line}: column `{column}`: `{value}` is not {expected}; correct the line or remove it", path.display())]
    Field {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The column.
        column: String,
        /// What stands there.
        value: String,
        /// What should.
        expected: &'static str,
    },
    /// A row with too few or too many fields.
    #[error("{}:{line}: column `{column}`: {value}; {why}", path.display())]
    Fields {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The first that is missing, or the last there should be.
        column: String,
        /// How many there are, and should be.
        value: String,
        /// What to do.
        why: &'static str,
    },
    /// Rows that cannot stand where they stand.
    #[error("{}:{line}: column `{column}`: {problem}", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// The two sides of a comparison share no stage.
    #[error("the two sides have no lane and stage in common ({a} against {b}); compare runs of the same kind")]
    NoCommonStage {
        /// What side A has.
        a: String,
        /// What side B has.
        b: String,
    },
    /// Stages cannot be given other names like that.
    #[error("--map {map}: {problem}")]
    Map {
        /// What was asked for.
        map: String,
        /// Why not.
        problem: &'static str,
    },
    /// A run is too short to be split.
    #[error("{}: no lane has {needed} iterations to split; a longer run says more", path.display())]
    TooShort {
        /// The run.
        path: PathBuf,
        /// How many there should be.
        needed: usize,
    },
    /// A number on the command line makes no sense.
    #[error("{what} must be {expected}, not `{value}`")]
    Number {
        /// `--threshold`, ….
        what: &'static str,
        /// What it should be.
        expected: &'static str,
        /// What was given.
        value: String,
    },
}
