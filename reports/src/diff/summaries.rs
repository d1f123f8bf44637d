//! Percentiles from stages.csv. The whole report is one observation of each stage.

use super::select::Select;
use super::side::{Clock, Key, LaneMeans, Observed, RunSeries};
use crate::error::{Error, Result};
use crate::stages::TOTAL;
use std::path::Path;

/// The columns that are read; the others may be missing.
const COLUMNS: [&str; 6] = ["rank", "lane", "stage", "depth", "iterations", "host_p50_ns"];
const DEVICE: [&str; 2] = ["device_iterations", "device_p50_ns"];

/// Reads stages.csv.
pub(super) fn read(path: &Path, select: &Select) -> Result<RunSeries> {
    if select.cuts_time() {
        let problem =
            "a stages.csv knows no times: for a part of a run give its directory or iterations.csv".to_owned();
        return Err(Error::Row { path: path.to_owned(), line: 1, column: "all", problem });
    }
    let bytes = std::fs::read(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    let mut reader = csv::ReaderBuilder::new().from_reader(bytes.as_slice());
    let header = reader.headers().map_err(|e| broken(path, &e))?.clone();
    let places = Places::find(path, &header)?;
    let mut run = RunSeries::default();
    for record in reader.records() {
        let record = record.map_err(|e| broken(path, &e))?;
        let line = record.position().map_or(0, csv::Position::line);
        take(&mut run, &Row { path, line, record: &record, header: &header }, &places, select)?;
    }
    if !bytes.ends_with(b"\n") {
        // Its last number may lack digits.
        let line = bytes.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
        let problem = "the line does not end: the file is cut; write it again".to_owned();
        return Err(Error::Row { path: path.to_owned(), line, column: "all", problem });
    }
    if run.keys.is_empty() {
        return Err(Error::Empty { path: path.to_owned(), what: select.lacks("it holds no stage") });
    }
    note_lanes_without_total(path, &mut run);
    Ok(run)
}

/// Where the columns stand.
struct Places {
    needed: [usize; 6],
    /// Number of values and median.
    device: Option<(usize, usize)>,
    p95: Option<usize>,
    device_p95: Option<usize>,
    total: Option<usize>,
}

impl Places {
    fn find(path: &Path, header: &csv::StringRecord) -> Result<Self> {
        let place = |name: &str| header.iter().position(|column| column == name);
        let mut needed = [0; 6];
        for (at, column) in needed.iter_mut().zip(COLUMNS) {
            *at = place(column).ok_or(Error::MissingColumn { path: path.to_owned(), column })?;
        }
        let device = place(DEVICE[0]).zip(place(DEVICE[1]));
        let (p95, device_p95) = (place("host_p95_ns"), place("device_p95_ns"));
        Ok(Self { needed, device, p95, device_p95, total: place("host_total_ns") })
    }
}

fn take(run: &mut RunSeries, row: &Row<'_>, places: &Places, select: &Select) -> Result<()> {
    let [rank, lane, stage, depth, n, p50] = places.needed;
    let depth = row.number(depth)?;
    let rank = u32::try_from(row.number(rank)?).map_err(|_| row.error(rank, "a rank"))?;
    let (lane, stage) = (row.name(lane, "a lane's name")?, row.name(stage, "a stage's name")?);
    if depth > 0 || !select.has(rank, lane) {
        return Ok(());
    }
    let key = |clock| Key { rank, lane: lane.to_owned(), stage: stage.to_owned(), clock };
    let p95 = places.p95.map(|at| row.optional(at)).transpose()?.flatten();
    insert(run, row, key(Clock::Host), [row.number(n)?, row.number(p50)?], p95)?;
    if let Some((n, p50)) = places.device.filter(|(_, p50)| !row.field(*p50).is_empty()) {
        let p95 = places.device_p95.map(|at| row.optional(at)).transpose()?.flatten();
        insert(run, row, key(Clock::Device), [row.number(n)?, row.number(p50)?], p95)?;
    }
    let sum = places.total.map(|at| row.optional(at)).transpose()?.flatten();
    // A report lists lane after lane.
    if run.lanes.last().is_none_or(|means| (means.rank, means.lane.as_str()) != (rank, lane)) {
        run.lanes.push(LaneMeans::new(rank, lane));
    }
    let Some(means) = run.lanes.last_mut() else { return Ok(()) };
    if stage == TOTAL {
        means.iterations = usize::try_from(row.number(n)?).unwrap_or(usize::MAX);
    }
    means.sums.extend(sum.map(|sum| (stage.to_owned(), sum as f64)));
    Ok(())
}

fn insert(run: &mut RunSeries, row: &Row<'_>, key: Key, [n, median]: [u64; 2], p95: Option<u64>) -> Result<()> {
    let n = usize::try_from(n).unwrap_or(usize::MAX);
    let observed = Observed::Summary { median: median as f64, p95: p95.map(|ns| ns as f64), n };
    if run.observed.insert(key.clone(), observed).is_some() {
        let (stage, lane) = (crate::text::harmless(&key.stage), crate::text::harmless(&key.lane));
        let problem = format!("a second row `{stage}` of lane {lane}; remove one");
        return Err(Error::Row { path: row.path.to_owned(), line: row.line, column: "stage", problem });
    }
    run.keys.push(key);
    Ok(())
}

/// A report ends each lane with its total; a file that was cut between two lines has one that does not.
fn note_lanes_without_total(path: &Path, run: &mut RunSeries) {
    let has_total: std::collections::HashSet<(u32, &str)> =
        run.keys.iter().filter(|key| key.stage == TOTAL).map(|key| (key.rank, key.lane.as_str())).collect();
    let lacks = |means: &&LaneMeans| !has_total.contains(&(means.rank, means.lane.as_str()));
    for means in run.lanes.iter().filter(lacks) {
        let lane = crate::text::harmless(&means.lane);
        run.notes.push(format!("{}: lane {lane} has no row `total`; the file may be cut", path.display()));
    }
}

struct Row<'a> {
    path: &'a Path,
    line: u64,
    record: &'a csv::StringRecord,
    header: &'a csv::StringRecord,
}

impl Row<'_> {
    fn field(&self, at: usize) -> &str {
        self.record.get(at).unwrap_or_default()
    }

    fn name(&self, at: usize, expected: &'static str) -> Result<&str> {
        Some(self.field(at)).filter(|name| !name.is_empty()).ok_or_else(|| self.error(at, expected))
    }

    fn number(&self, at: usize) -> Result<u64> {
        self.field(at).parse().map_err(|_| self.error(at, "a whole number that is not negative"))
    }

    fn optional(&self, at: usize) -> Result<Option<u64>> {
        if self.field(at).is_empty() { Ok(None) } else { self.number(at).map(Some) }
    }

    fn error(&self, at: usize, expected: &'static str) -> Error {
        let column = self.header.get(at).unwrap_or_default().to_owned();
        let value = crate::text::harmless(self.field(at));
        Error::Field { path: self.path.to_owned(), line: self.line, column, value, expected }
    }
}

fn broken(path: &Path, error: &csv::Error) -> Error {
    let line = error.position().map_or(1, csv::Position::line);
    let problem = format!("{error}; correct the line or remove it");
    Error::Row { path: path.to_owned(), line, column: "all", problem }
}
