//! The rows of iterations.csv one by one, checked field by field, without keeping any: a run may have millions.
//!
//! A last line without its newline is still being written, or torn: it is left out and said. So is a short line before
//! the first row of a later attempt: what a crash left, after which the run was resumed.
//!
//! dflash_timeline's own reader gives whole rows that can be kept, each with texts of its own, and ends at the first line
//! that is wrong. Here a row is looked at and let go, and what is wrong may take more than one line to tell. Which files hold
//! the rows, and where they end, both ask the same place.

use crate::error::{Error, Result};
use csv::ByteRecord;
use dflash_timeline::iterations::{ITERATIONS_SCHEMA, IterationsFile};
use dflash_timeline::record::Kind;
use std::path::Path;
use std::str::FromStr;

/// The columns that are read, in the order of [`Row`].
const COLUMNS: [&str; 12] = [
    "schema",
    "attempt",
    "rank",
    "lane",
    "iteration",
    "kind",
    "stage",
    "start_ns",
    "host_ns",
    "device_ns",
    "tokens",
    "device",
];
const WHOLE: &str = "a whole number";
const NANOSECONDS: &str = "a whole number of nanoseconds that is not negative, or empty";

/// One row.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row<'a> {
    /// Line in its file, from 1.
    pub line: u64,
    pub attempt: u32,
    pub rank: u32,
    pub lane: &'a str,
    /// Empty if it is not known.
    pub device: &'a str,
    pub iteration: u64,
    pub kind: Kind,
    pub stage: &'a str,
    pub start_ns: i64,
    pub host_ns: Option<u64>,
    pub device_ns: Option<u64>,
}

/// Hands each row to `visit`; returns what was left out, in words.
pub(super) fn for_each(file: IterationsFile, mut visit: impl FnMut(&Row<'_>) -> Result<()>) -> Result<Vec<String>> {
    let path = file.path().to_owned();
    let (bytes, torn) = file.open()?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).buffer_capacity(1 << 18).from_reader(bytes);
    let header = reader.byte_headers().map_err(|e| malformed(&path, &e))?.clone();
    let columns = Columns::find(&path, &header)?;
    let mut record = ByteRecord::new();
    let (mut notices, mut short): (Vec<String>, Option<(u64, Error)>) = (Vec::new(), None);
    let mut newest: Option<u32> = None;
    loop {
        let line = reader.position().line();
        if !reader.read_byte_record(&mut record).map_err(|e| malformed(&path, &e))? {
            if torn {
                notices.push(format!("{}:{line}: the last line is not complete and was left out", path.display()));
            }
            break;
        }
        check_blank(&path, line, reader.position().line(), &record)?;
        if record.len() < header.len() && short.is_none() {
            short = Some((line, columns.wrong_count(line, &record)));
            continue;
        }
        let row = columns.row(line, &record)?;
        if let Some((line, error)) = short.take() {
            if newest.is_none_or(|newest| row.attempt <= newest) {
                return Err(error);
            }
            notices.push(format!("{}:{line}: a crash left half a line, which was left out", path.display()));
        }
        newest = newest.max(Some(row.attempt));
        visit(&row)?;
    }
    short.map_or(Ok(notices), |(_, error)| Err(error))
}

/// The CSV reader passes blank lines by; a report has none.
fn check_blank(path: &Path, line: u64, next: u64, record: &ByteRecord) -> Result<()> {
    let breaks = record.as_slice().iter().filter(|byte| **byte == b'\n');
    if next > line + 1 && next > line + 1 + breaks.count() as u64 {
        let problem = "the line is empty; remove it".to_owned();
        return Err(Error::Row { path: path.to_owned(), line, column: "all", problem });
    }
    Ok(())
}

/// Where the columns stand.
struct Columns<'a> {
    path: &'a Path,
    header: &'a ByteRecord,
    places: [usize; COLUMNS.len()],
}

impl<'a> Columns<'a> {
    fn find(path: &'a Path, header: &'a ByteRecord) -> Result<Self> {
        let mut places = [0; COLUMNS.len()];
        for (place, column) in places.iter_mut().zip(COLUMNS) {
            let mut found = header.iter().enumerate().filter(|(_, name)| *name == column.as_bytes()).map(|(i, _)| i);
            *place = found.next().ok_or_else(|| Error::MissingColumn { path: path.to_owned(), column })?;
            if found.next().is_some() {
                let problem = "stands twice in the header; remove one".to_owned();
                return Err(Error::Row { path: path.to_owned(), line: 1, column, problem });
            }
        }
        Ok(Self { path, header, places })
    }

    fn row<'r>(&self, line: u64, record: &'r ByteRecord) -> Result<Row<'r>> {
        if record.len() != self.header.len() {
            return Err(self.wrong_count(line, record));
        }
        let at = |column: usize| record.get(self.places[column]).unwrap_or_default();
        let error = |column: usize, expected| self.wrong(line, column, at(column), expected);
        let number = |column: usize| whole(at(column)).ok_or_else(|| error(column, WHOLE));
        let small = |column: usize| parsed::<u32>(at(column)).ok_or_else(|| error(column, WHOLE));
        let known = |column: usize| match at(column) {
            b"" => Ok(None),
            digits => whole(digits).map(Some).ok_or_else(|| error(column, NANOSECONDS)),
        };
        let text = |column: usize, expected| {
            std::str::from_utf8(at(column)).ok().filter(|t| !t.is_empty()).ok_or_else(|| error(column, expected))
        };
        let schema = small(0)?;
        if schema > ITERATIONS_SCHEMA {
            let (path, known) = (self.path.to_owned(), ITERATIONS_SCHEMA);
            return Err(dflash_timeline::Error::TooNew { path, version: schema, known }.into());
        }
        known(10)?;
        let word = std::str::from_utf8(at(5)).unwrap_or_default();
        Ok(Row {
            line,
            attempt: small(1)?,
            rank: small(2)?,
            lane: text(3, "a lane's name")?,
            device: std::str::from_utf8(at(11)).map_err(|_| error(11, "UTF-8"))?,
            iteration: number(4)?,
            kind: Kind::parse(word).ok_or_else(|| error(5, "one of train, warmup, checkpoint, eval, bare, drain"))?,
            stage: text(6, "a stage's name")?,
            start_ns: parsed(at(7)).ok_or_else(|| error(7, "a whole number of nanoseconds"))?,
            host_ns: known(8)?,
            device_ns: known(9)?,
        })
    }

    fn wrong(&self, line: u64, column: usize, value: &[u8], expected: &'static str) -> Error {
        let value = crate::text::harmless(&String::from_utf8_lossy(value));
        let column = COLUMNS.get(column).copied().unwrap_or("?").to_owned();
        Error::Field { path: self.path.to_owned(), line, column, value, expected }
    }

    fn wrong_count(&self, line: u64, record: &ByteRecord) -> Error {
        let (found, expected) = (record.len(), self.header.len());
        let name = |at: usize| crate::text::harmless(&String::from_utf8_lossy(self.header.get(at).unwrap_or_default()));
        let (column, why) = if found > expected {
            (name(expected.saturating_sub(1)), "decimals take a point, and a text with a comma takes quotes")
        } else {
            (name(found), "its field is missing")
        };
        let value = format!("{found} fields where the header has {expected}");
        Error::Fields { path: self.path.to_owned(), line, column, value, why }
    }
}

/// Decimal digits alone.
fn whole(digits: &[u8]) -> Option<u64> {
    let digit = |sum: u64, byte: &u8| {
        let digit = byte.wrapping_sub(b'0');
        (digit < 10).then(|| sum.checked_mul(10)?.checked_add(u64::from(digit)))?
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, digit) }
}

fn parsed<T: FromStr>(bytes: &[u8]) -> Option<T> {
    std::str::from_utf8(bytes).ok()?.parse().ok()
}

fn malformed(path: &Path, error: &csv::Error) -> Error {
    let line = error.position().map_or(1, csv::Position::line);
    Error::Row { path: path.to_owned(), line, column: "all", problem: format!("{error}") }
}
