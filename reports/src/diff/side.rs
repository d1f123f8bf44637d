//! One side of a comparison: one or several runs or CSV reports, read into series by lane and stage.

use super::facts::RunFacts;
use super::select::Select;
use super::throttle::Gpus;
use super::{iterations, summaries};
use crate::error::{Error, Result};
use dflash_timeline::RunDir;
use dflash_timeline::iterations::{IterationsFile, iterations_files};
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
    /// Only percentiles are known, and the number of values behind them.
    Summary { median: f64, p95: Option<f64>, n: usize },
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

/// Sums over a lane's iterations: what means are made of, which unlike medians add up.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LaneMeans {
    pub rank: u32,
    pub lane: String,
    /// Iterations with a row `total`.
    pub iterations: usize,
    /// Host time of each stage over all iterations, nanoseconds.
    pub sums: Vec<(String, f64)>,
}

impl LaneMeans {
    pub(super) fn new(rank: u32, lane: &str) -> Self {
        Self { rank, lane: lane.to_owned(), ..Self::default() }
    }
}

/// One run or report, read.
#[derive(Debug, Default)]
pub(super) struct RunSeries {
    /// In the order in which lanes and stages first appear.
    pub keys: Vec<Key>,
    pub observed: HashMap<Key, Observed>,
    pub lanes: Vec<LaneMeans>,
    pub cuts: Vec<Cut>,
    /// Iterations of other kinds than `train`.
    pub set_apart: u64,
    /// Iterations with clocks held down; `None` if nothing is known of clocks.
    pub throttled: Option<u64>,
    /// What is known of where and how it ran; `None` from a CSV alone.
    pub facts: Option<RunFacts>,
    /// What a reader should know.
    pub notes: Vec<String>,
}

/// One side, read.
#[derive(Debug)]
pub struct Side {
    /// The paths as they were given.
    pub paths: Vec<PathBuf>,
    pub(super) runs: Vec<RunSeries>,
    /// Names that stages had before [`Renames`](super::Renames) changed them, by their new ones.
    pub(super) renamed: HashMap<String, String>,
}

impl Side {
    /// Reads run directories, iterations.csv and stages.csv files.
    ///
    /// # Errors
    /// If one of them is none of these, or holds nothing, or holds what cannot be; the error names file, line, column.
    pub fn read(paths: &[PathBuf]) -> Result<Self> {
        Self::read_part(paths, &Select::default())
    }

    /// Reads a part of them.
    ///
    /// # Errors
    /// As [`read`](Self::read), and if that part holds nothing.
    pub fn read_part(paths: &[PathBuf], select: &Select) -> Result<Self> {
        let runs = paths.iter().map(|path| read(path, select)).collect::<Result<_>>()?;
        Ok(Self { paths: paths.to_vec(), runs, renamed: HashMap::new() })
    }

    /// Reads both sides of a comparison, side by side.
    ///
    /// # Errors
    /// As [`read_part`](Self::read_part).
    pub fn read_both(a: &[PathBuf], b: &[PathBuf], select: &Select) -> Result<(Self, Self)> {
        std::thread::scope(|scope| {
            let other = scope.spawn(|| Self::read_part(b, select));
            let a = Self::read_part(a, select)?;
            // A thread that ended badly, which reading gives no cause for: it is read here.
            Ok((a, other.join().unwrap_or_else(|_| Self::read_part(b, select))?))
        })
    }

    /// A side of runs that lie in no file.
    pub(super) fn of(runs: Vec<RunSeries>) -> Self {
        Self { paths: Vec::new(), runs, renamed: HashMap::new() }
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

fn read(path: &Path, select: &Select) -> Result<RunSeries> {
    if path.is_dir() {
        return read_run(path, select);
    }
    let header = header(path)?;
    let names: Vec<&str> = header.trim_end().split(',').map(|name| name.trim_matches('"')).collect();
    let (iteration, stage) = (names.contains(&"iteration"), names.contains(&"stage"));
    if iteration || names.contains(&"host_ns") {
        let (gathered, notes) = iterations::read(path, vec![IterationsFile::at(path)], select)?;
        let mut run = iterations::series(path, gathered, None, select)?;
        run.notes.extend(notes);
        Ok(run)
    } else if stage || names.contains(&"host_p50_ns") {
        summaries::read(path, select)
    } else {
        Err(Error::NotAReport { path: path.to_owned(), header: crate::text::harmless(header.trim_end()) })
    }
}

fn read_run(path: &Path, select: &Select) -> Result<RunSeries> {
    let run = RunDir::open(path)?;
    let manifest = run.manifest()?;
    let newest = run.iterations_csv();
    let mut files = iterations_files(&newest)?;
    if files.is_empty() {
        // Opening it says what is missing.
        files.push(IterationsFile::at(&newest));
    }
    let (gathered, notes) = iterations::read(&newest, files, select)?;
    // Of a run on CPUs alone the timing stream says nothing that is needed here.
    let on_gpu = gathered.lanes.iter().any(|lane| lane.device.starts_with("cuda"));
    let gpus = if on_gpu { Gpus::of_run(&run) } else { Gpus::default() };
    let mut series = iterations::series(path, gathered, gpus.spells.as_deref(), select)?;
    series.notes.extend(notes);
    let state = run.state()?.as_str();
    if state != "finished" {
        series.notes.push(format!("{}: the run is {state}, not finished", path.display()));
    }
    series.facts = Some(RunFacts::of(&manifest, gpus.driver));
    Ok(series)
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
