//! One side of a comparison: one or several runs or CSV reports, read into series by lane and stage.

use super::{iterations, summaries};
use crate::error::{Error, Result};
use dflash_timeline::RunDir;
use serde::Serialize;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// Which clock a time comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// Host time.
    Host,
    /// Device time.
    Device,
}

/// What is compared with its like on the other side.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct Key {
    /// Process of a multi-process run.
    pub rank: u32,
    /// The lane.
    pub lane: String,
    /// The stage, `residue` or `total`.
    pub stage: String,
    /// Host or device time.
    pub clock: Clock,
}

/// Times of one stage in one run.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Observed {
    /// Nanoseconds of every iteration that counts, in order of time.
    Series(Vec<f64>),
    /// Only their median is known, and their number.
    Summary { median: f64, n: usize },
}

/// How many iterations a lane lost to the warm-up cut.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cut {
    /// The run.
    pub run: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// The lane.
    pub lane: String,
    /// Which start of the run.
    pub attempt: u32,
    /// Iterations that were cut.
    pub cut: usize,
    /// Iterations that there were.
    pub of: usize,
}

/// One run or report, read.
#[derive(Debug, Default)]
pub(super) struct RunSeries {
    /// In the order in which lanes and stages first appear.
    pub keys: Vec<Key>,
    pub observed: HashMap<Key, Observed>,
    pub cuts: Vec<Cut>,
    /// Iterations of other kinds than `train`.
    pub set_apart: u64,
}

/// One side, read.
#[derive(Debug)]
pub struct Side {
    /// The paths as they were given.
    pub paths: Vec<PathBuf>,
    pub(super) runs: Vec<RunSeries>,
}

impl Side {
    /// Reads run directories, iterations.csv and stages.csv files.
    ///
    /// # Errors
    /// If one of them is none of these, or holds nothing, or holds what cannot be; the error names file, line, column.
    pub fn read(paths: &[PathBuf]) -> Result<Self> {
        let runs = paths.iter().map(|path| read(path)).collect::<Result<_>>()?;
        Ok(Self { paths: paths.to_vec(), runs })
    }

    /// All keys, in the order in which they first appear.
    pub(super) fn keys(&self) -> Vec<&Key> {
        let mut seen = std::collections::HashSet::new();
        self.runs.iter().flat_map(|run| &run.keys).filter(|key| seen.insert(*key)).collect()
    }

    /// A stage's times in every run that has it.
    pub(super) fn observed(&self, key: &Key) -> Vec<&Observed> {
        self.runs.iter().filter_map(|run| run.observed.get(key)).collect()
    }
}

fn read(path: &Path) -> Result<RunSeries> {
    if path.is_dir() {
        return iterations::read(&RunDir::open(path)?.iterations_csv());
    }
    let header = header(path)?;
    let names: Vec<&str> = header.trim_end().split(',').map(|name| name.trim_matches('"')).collect();
    let (iteration, stage) = (names.contains(&"iteration"), names.contains(&"stage"));
    if iteration || names.contains(&"host_ns") {
        iterations::read(path)
    } else if stage || names.contains(&"host_p50_ns") {
        summaries::read(path)
    } else {
        Err(Error::NotAReport { path: path.to_owned(), header: crate::text::harmless(header.trim_end()) })
    }
}

/// The first line, of which a binary file may have a long one.
fn header(path: &Path) -> Result<String> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let mut start = Vec::new();
    let file = std::io::Read::take(BufReader::new(File::open(path).map_err(io)?), 1000);
    BufReader::new(file).read_until(b'\n', &mut start).map_err(io)?;
    if start.is_empty() {
        return Err(Error::Empty { path: path.to_owned(), what: "the file is empty" });
    }
    Ok(String::from_utf8_lossy(&start).into_owned())
}
