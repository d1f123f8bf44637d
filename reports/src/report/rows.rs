//! iterations.csv for other programs: the rows of the runs' own files that are asked for, always well-formed.

use crate::error::{Error, Result};
use crate::sources::{Merged, Place};
use crate::window::Window;
use csv::StringRecord;
use dflash_timeline::RunDir;
use dflash_timeline::iterations::{TOTAL, iterations_files};
use std::io::{Read, Write};
use std::path::Path;

/// What became of the rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// Rows that were written, without the header.
    pub rows: u64,
    /// Iterations among them: rows `total`.
    pub iterations: u64,
    /// Lines that were left out because they are not whole: the last one of a run that goes on, one that a crash cut;
    /// and iterations without their last row.
    pub torn: u64,
}

/// What is needed of a row to judge it.
const NEEDED: [&str; 7] = ["rank", "lane", "iteration", "stage", "start_ns", "host_ns", "attempt"];

/// Writes the rows of iterations.csv of all runs that belong to the window: those of iterations that end in it, on its
/// lanes and ranks. Ranks are those of the report. The columns are those of the first run's file; of a file with other
/// columns, or of none, nothing is taken, and the error says so.
///
/// # Errors
/// If a file cannot be read, lacks a column, or has other columns than the first; if writing fails.
pub fn iterations_csv(runs: &[RunDir], merged: &Merged, out: &mut impl Write) -> Result<Exported> {
    let mut writer = csv::Writer::from_writer(out);
    let (mut done, mut header) = (Exported::default(), None);
    for (run, place) in runs.iter().zip(&merged.places) {
        // The rows of an iteration may stand on both sides of a cut.
        let (mut together, mut last) = (Vec::new(), None);
        for file in iterations_files(&run.iterations_csv())? {
            let path = file.path().to_owned();
            let (whole, torn) = file.open()?;
            done.torn += u64::from(torn);
            let mut source = Source::open(&path, whole, merged, place)?;
            match &header {
                None => {
                    writer.write_record(&source.header)?;
                    header = Some(source.header.clone());
                }
                Some(known) if *known == source.header => {}
                Some(_) => {
                    return Err(Error::NotAReport { path, header: source.header.iter().collect::<Vec<_>>().join(",") });
                }
            }
            source.copy(&mut together, &mut writer, &mut done)?;
            last = Some(source);
        }
        if let Some(source) = last {
            source.write(&together, &mut writer, &mut done)?;
        }
    }
    writer.flush()?;
    Ok(done)
}

/// One run's file.
struct Source {
    reader: csv::Reader<Box<dyn Read + Send>>,
    header: StringRecord,
    /// Places of [`NEEDED`].
    places: [usize; 7],
    window: Window,
    first_rank: u32,
}

impl Source {
    fn open(path: &Path, bytes: Box<dyn Read + Send>, merged: &Merged, place: &Place) -> Result<Self> {
        let mut reader = csv::ReaderBuilder::new().flexible(true).buffer_capacity(1 << 16).from_reader(bytes);
        let header = reader.headers()?.clone();
        let mut places = [0; NEEDED.len()];
        for (at, column) in places.iter_mut().zip(NEEDED) {
            let found = header.iter().position(|name| name == column);
            *at = found.ok_or_else(|| Error::MissingColumn { path: path.to_owned(), column })?;
        }
        Ok(Self { reader, header, places, window: merged.dated()?, first_rank: place.first_rank })
    }

    /// The rows of an iteration stand together, its total last; they are written or left out together.
    fn copy(
        &mut self,
        together: &mut Vec<StringRecord>,
        writer: &mut csv::Writer<impl Write>,
        done: &mut Exported,
    ) -> Result<()> {
        let mut record = StringRecord::new();
        loop {
            match self.reader.read_record(&mut record) {
                Ok(true) if record.len() == self.header.len() => {}
                Ok(true) => {
                    done.torn += 1;
                    continue;
                }
                Ok(false) => break,
                Err(e) if matches!(e.kind(), csv::ErrorKind::Utf8 { .. }) => {
                    done.torn += 1;
                    continue;
                }
                Err(e) => return Err(e.into()),
            }
            if together.last().is_some_and(|last| !self.same_iteration(last, &record)) {
                self.write(together, writer, done)?;
                together.clear();
            }
            together.push(record.clone());
        }
        Ok(())
    }

    fn field<'r>(&self, record: &'r StringRecord, needed: usize) -> &'r str {
        record.get(self.places[needed]).unwrap_or("")
    }

    fn same_iteration(&self, a: &StringRecord, b: &StringRecord) -> bool {
        [0, 1, 2, 6].iter().all(|&needed| self.field(a, needed) == self.field(b, needed)) && self.field(a, 3) != TOTAL
    }

    fn write(&self, rows: &[StringRecord], writer: &mut csv::Writer<impl Write>, done: &mut Exported) -> Result<()> {
        let Some(last) = rows.last() else { return Ok(()) };
        let number = |needed: usize| self.field(last, needed).parse::<i64>().ok();
        let rank = self.field(last, 0).parse::<u32>().ok().map(|rank| rank.saturating_add(self.first_rank));
        let lane = self.field(last, 1);
        let end = number(4).map(|start| start.saturating_add(number(5).unwrap_or(0)));
        let inside = rank.is_none_or(|rank| self.window.has_rank(rank))
            && (self.window.lanes.is_empty() || self.window.lanes.iter().any(|name| name == lane))
            && end.is_none_or(|end| self.window.has_time(end));
        if !inside {
            return Ok(());
        }
        if self.field(last, 3) != TOTAL {
            done.torn += 1;
            return Ok(());
        }
        done.iterations += 1;
        for row in rows {
            done.rows += 1;
            match rank {
                Some(rank) if self.first_rank > 0 => {
                    let rank = rank.to_string();
                    let fields = row.iter().enumerate();
                    writer.write_record(fields.map(|(at, field)| if at == self.places[0] { &rank } else { field }))?;
                }
                _ => writer.write_record(row)?,
            }
        }
        Ok(())
    }
}
