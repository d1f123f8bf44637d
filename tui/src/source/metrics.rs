//! metrics.csv as it grows. Only what was added is read, and only as many rows are kept as a chart can show: the file of a
//! long training is many times longer than that, and is looked at every second.
//!
//! The file's own reader ([`timeline::read_metrics`]) is asked when a line cannot be read: it says why.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::PathBuf;

use dflash_reports::timeline::{self, MetricsRow};

use crate::Result;

/// Rows that are kept at most.
const MOST: usize = 2048;
/// Of a file that is longer than this when it is first looked at, only some rows are read but the newest megabyte: the
/// first picture of a long training must not wait for millions of rows.
const LONG: u64 = 8 << 20;
const NEWEST: u64 = 1 << 20;
const SOME: u64 = 512;

/// Rows of metrics.csv: all of a short file, every n-th of a long one.
#[derive(Debug)]
pub struct Metrics {
    path: PathBuf,
    columns: Vec<String>,
    offset: u64,
    logged: u64,
    stride: u64,
    rows: Vec<MetricsRow>,
    /// Whether the last row is kept only until the next one comes.
    passing: bool,
    /// Whether rows were passed over unread, so that nobody knows how many there are.
    skipped: bool,
}

impl Metrics {
    /// Of a file that need not be there yet. Nothing is read before the first [`poll`](Self::poll).
    #[must_use]
    pub fn of(path: PathBuf) -> Self {
        Self {
            path,
            columns: Vec::new(),
            offset: 0,
            logged: 0,
            stride: 1,
            rows: Vec::new(),
            passing: false,
            skipped: false,
        }
    }

    /// The rows that are kept, oldest first; the newest is among them.
    #[must_use]
    pub fn rows(&self) -> &[MetricsRow] {
        &self.rows
    }

    /// Rows of the file; `None` of a file that was too long to count them.
    #[must_use]
    pub fn logged(&self) -> Option<u64> {
        (!self.skipped).then_some(self.logged)
    }

    /// Reads what was added. A last line without its end is left for the next time.
    ///
    /// # Errors
    /// When the file cannot be read or understood; its rows so far are kept.
    pub fn poll(&mut self) -> Result<()> {
        let length = match std::fs::metadata(&self.path) {
            Ok(data) => data.len(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(_) => return self.official(),
        };
        if length < self.offset {
            // Another file stands there now.
            *self = Self::of(std::mem::take(&mut self.path));
        }
        if length == self.offset {
            return Ok(());
        }
        let read = if self.offset == 0 && length > LONG { self.read_some(length) } else { self.read_on() };
        match read {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => self.official(),
        }
    }

    /// Lets the file's own reader say what is wrong; if it finds nothing wrong, its rows are taken.
    fn official(&mut self) -> Result<()> {
        let rows = timeline::read_metrics(&self.path)?;
        *self = Self { columns: std::mem::take(&mut self.columns), ..Self::of(std::mem::take(&mut self.path)) };
        self.offset = std::fs::metadata(&self.path).map_or(0, |data| data.len());
        rows.into_iter().for_each(|row| self.add(row));
        Ok(())
    }

    /// Whether every whole line could be read.
    fn read_on(&mut self) -> io::Result<bool> {
        let mut file = BufReader::new(File::open(&self.path)?);
        file.seek(SeekFrom::Start(self.offset))?;
        let mut line = String::new();
        loop {
            line.clear();
            let read = file.read_line(&mut line)?;
            if !line.ends_with('\n') {
                return Ok(true);
            }
            let whole = line.trim_end_matches(['\n', '\r']);
            if self.columns.is_empty() {
                self.columns = whole.split(',').map(str::to_owned).collect();
                if !self.columns.iter().any(|column| column == "step") {
                    self.columns.clear();
                    return Ok(false);
                }
            } else {
                let Some(row) = parse(&self.columns, whole) else { return Ok(false) };
                self.add(row);
            }
            self.offset += read as u64;
        }
    }

    /// Reads some rows of a long file, and its newest ones all.
    fn read_some(&mut self, length: u64) -> io::Result<bool> {
        let mut file = BufReader::new(File::open(&self.path)?);
        let mut line = String::new();
        self.offset = file.read_line(&mut line)? as u64;
        self.columns = line.trim_end().split(',').map(str::to_owned).collect();
        if !line.ends_with('\n') || !self.columns.iter().any(|column| column == "step") {
            return Ok(false);
        }
        let (begin, behind) = (self.offset, length - NEWEST);
        for at in (0..SOME).map(|part| begin + (behind - begin) / SOME * part) {
            let row = next_row(&mut file, at, begin, &mut line)?.and_then(|row| parse(&self.columns, row));
            let Some(row) = row else { return Ok(false) };
            self.rows.push(row);
        }
        // From the next line on everything is read, and about as many rows are kept of it.
        let length = next_row(&mut file, behind, begin, &mut line)?.map_or(1, str::len).max(1) as u64;
        self.stride = ((behind - begin) / SOME / length).max(1);
        self.offset = file.stream_position()?;
        (self.skipped, self.passing) = (true, false);
        self.read_on()
    }

    fn add(&mut self, row: MetricsRow) {
        if self.passing {
            self.rows.pop();
        }
        // Evaluations are few, and each of them counts.
        self.passing = !self.logged.is_multiple_of(self.stride) && row.acceptance_length.is_none();
        self.logged += 1;
        self.rows.push(row);
        if self.rows.len() > MOST {
            self.stride = self.stride.saturating_mul(2);
            let (mut at, newest) = (0, self.rows.len());
            self.rows.retain(|row| {
                at += 1;
                at % 2 == 1 || at == newest || row.acceptance_length.is_some() && at % 16 != 0
            });
        }
    }
}

/// The first whole line behind `at`; `None` if there is none. At the rows' begin a line begins.
fn next_row<'l>(file: &mut BufReader<File>, at: u64, begin: u64, line: &'l mut String) -> io::Result<Option<&'l str>> {
    let inside = at > begin;
    file.seek(SeekFrom::Start(at - u64::from(inside)))?;
    if inside {
        file.skip_until(b'\n')?;
    }
    line.clear();
    file.read_line(line)?;
    Ok(line.ends_with('\n').then(|| line.trim_end_matches(['\n', '\r'])))
}

/// A row by the names of its columns; `None` if it is not what they promise.
fn parse(columns: &[String], line: &str) -> Option<MetricsRow> {
    // The file's writer has no need of quotes.
    let fields: Vec<&str> = line.split(',').collect();
    if fields.len() != columns.len() || line.contains('"') {
        return None;
    }
    let mut row = MetricsRow::default();
    for (column, field) in columns.iter().zip(fields) {
        let number = || if field.is_empty() { Some(None) } else { field.parse::<f64>().ok().map(Some) };
        match column.as_str() {
            "schema" if field.parse() != Ok(timeline::metrics::METRICS_SCHEMA) => return None,
            "attempt" => row.attempt = field.parse().ok()?,
            "step" => row.step = field.parse().ok()?,
            "time_ns" => row.time_ns = field.parse().ok()?,
            "loss" => row.loss = number()?,
            "accuracy" => row.accuracy = number()?,
            "learning_rate" => row.learning_rate = number()?,
            "gradient_norm" => row.gradient_norm = number()?,
            "acceptance_length" => row.acceptance_length = number()?,
            "tokens_per_s" => row.tokens_per_s = number()?,
            "supervised_tokens_per_s" => row.supervised_tokens_per_s = number()?,
            "simulated_acceptance_length" => row.simulated_acceptance_length = number()?,
            "block_acceptance_length" => row.block_acceptance_length = number()?,
            "skipped" => row.skipped = number()?.map(|steps| steps as u64),
            slot if slot.starts_with("loss_") => row.slot_losses.extend(number()?),
            slot if slot.starts_with("accuracy_") => row.slots.extend(number()?),
            _ => {}
        }
    }
    Some(row)
}

#[cfg(test)]
mod tests;
