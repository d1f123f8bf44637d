//! Medians from stages.csv. The whole report is one observation of each stage.

use super::side::{Clock, Key, Observed, RunSeries};
use crate::error::{Error, Result};
use std::path::Path;

/// The columns that are read; the others may be missing.
const COLUMNS: [&str; 6] = ["rank", "lane", "stage", "depth", "iterations", "host_p50_ns"];
const DEVICE: [&str; 2] = ["device_iterations", "device_p50_ns"];

/// Reads stages.csv.
pub(super) fn read(path: &Path) -> Result<RunSeries> {
    let text = std::fs::read_to_string(path).map_err(|source| Error::Io { path: path.to_owned(), source })?;
    let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| broken(path, &e))?.clone();
    let place = |name: &str| header.iter().position(|column| column == name);
    let mut places = [0; 6];
    for (at, column) in places.iter_mut().zip(COLUMNS) {
        *at = place(column).ok_or(Error::MissingColumn { path: path.to_owned(), column })?;
    }
    let device = place(DEVICE[0]).zip(place(DEVICE[1]));
    let mut run = RunSeries::default();
    for record in reader.records() {
        let record = record.map_err(|e| broken(path, &e))?;
        let line = record.position().map_or(0, csv::Position::line);
        let row = Row { path, line, record: &record, header: &header };
        let [rank, lane, stage, depth, n, p50] = places;
        if row.number(depth)? > 0 {
            continue;
        }
        let key = |clock| -> Result<Key> {
            let rank = u32::try_from(row.number(rank)?).map_err(|_| row.error(rank, "a rank"))?;
            Ok(Key { rank, lane: row.field(lane).to_owned(), stage: row.field(stage).to_owned(), clock })
        };
        insert(&mut run, &row, key(Clock::Host)?, row.number(n)?, row.number(p50)?)?;
        if let Some((n, p50)) = device.filter(|(_, p50)| !row.field(*p50).is_empty()) {
            insert(&mut run, &row, key(Clock::Device)?, row.number(n)?, row.number(p50)?)?;
        }
    }
    if run.keys.is_empty() {
        return Err(Error::Empty { path: path.to_owned(), what: "it holds no stage" });
    }
    Ok(run)
}

fn insert(run: &mut RunSeries, row: &Row<'_>, key: Key, n: u64, median: u64) -> Result<()> {
    let observed = Observed::Summary { median: median as f64, n: usize::try_from(n).unwrap_or(usize::MAX) };
    if run.observed.insert(key.clone(), observed).is_some() {
        let problem = format!("a second row `{}` of lane {}; remove one", key.stage, key.lane);
        return Err(Error::Row { path: row.path.to_owned(), line: row.line, column: "stage", problem });
    }
    run.keys.push(key);
    Ok(())
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

    fn number(&self, at: usize) -> Result<u64> {
        self.field(at).parse().map_err(|_| self.error(at, "a whole number that is not negative"))
    }

    fn error(&self, at: usize, expected: &'static str) -> Error {
        let column = self.header.get(at).unwrap_or_default().to_owned();
        let value = crate::text::harmless(self.field(at));
        Error::Field { path: self.path.to_owned(), line: self.line, column, value, expected }
    }
}

fn broken(path: &Path, error: &csv::Error) -> Error {
    let line = error.position().map_or(1, csv::Position::line);
    Error::Row {
        path: path.to_owned(),
        line,
        column: "all",
        problem: format!("{error}; correct the line or remove it"),
    }
}
