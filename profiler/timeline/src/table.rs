//! Reading of CSV files whose errors name file, line and column; shared by iterations.csv and metrics.csv.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::str::FromStr;

use csv::StringRecord;

use crate::error::{Error, Result};

/// A file's columns: where the needed ones stand, and all their names.
pub(crate) struct Columns<'a> {
    path: &'a Path,
    needed: &'a [&'a str],
    places: Vec<usize>,
    /// The header as it stands in the file.
    pub(crate) header: StringRecord,
}

/// One line of the file.
pub(crate) struct Row<'a> {
    columns: &'a Columns<'a>,
    line: u64,
    record: &'a StringRecord,
}

/// Reads a file's lines with `parse`. A last line without its newline is still being written, or torn: it is left out,
/// and the returned notice says so.
pub(crate) fn read<T>(
    path: &Path,
    needed: &[&str],
    mut parse: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<(Vec<T>, Option<String>)> {
    let (length, torn) = extent(path)?;
    let file = File::open(path).map_err(Error::io(path, "read it"))?;
    // A run may append meanwhile; what it adds after this moment is for the next reading.
    let bytes = BufReader::new(file).take(length);
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
    let header = reader.headers().map_err(|e| malformed(path, &e))?.clone();
    let columns = Columns::find(path, needed, header)?;
    let mut rows = Vec::new();
    let mut record = StringRecord::new();
    loop {
        let line = reader.position().line();
        let more = reader.read_record(&mut record);
        if torn && reader.position().byte() >= length {
            let notice = format!("{}:{line}: the last line is not complete and was left out", path.display());
            return Ok((rows, Some(notice)));
        }
        if !more.map_err(|e| malformed(path, &e))? {
            return Ok((rows, None));
        }
        let line = record.position().map_or(line, csv::Position::line);
        rows.push(parse(&columns.row(line, &record)?)?);
    }
}

/// Length of the file, and whether its last line lacks a newline.
fn extent(path: &Path) -> Result<(u64, bool)> {
    let look = || {
        let mut file = File::open(path)?;
        let length = file.seek(SeekFrom::End(0))?;
        if length == 0 {
            return Ok((0, false));
        }
        file.seek(SeekFrom::Start(length - 1))?;
        let mut last = [0_u8];
        file.read_exact(&mut last)?;
        Ok((length, last != *b"\n"))
    };
    look().map_err(Error::io(path, "read it"))
}

fn malformed(path: &Path, error: &csv::Error) -> Error {
    let line = error.position().map_or(1, csv::Position::line);
    let problem = match error.kind() {
        csv::ErrorKind::Utf8 { .. } => "not UTF-8".to_owned(),
        csv::ErrorKind::Io(e) => format!("cannot be read: {e}"),
        _ => error.to_string(),
    };
    Error::Csv { path: path.to_owned(), line, problem }
}

impl<'a> Columns<'a> {
    fn find(path: &'a Path, needed: &'a [&'a str], header: StringRecord) -> Result<Self> {
        let place = |name: &&str| {
            header.iter().position(|column| column == *name).ok_or_else(|| Error::MissingColumn {
                path: path.to_owned(),
                column: (*name).to_owned(),
                expected: needed.join(","),
            })
        };
        let places = needed.iter().map(place).collect::<Result<_>>()?;
        Ok(Self { path, needed, places, header })
    }

    fn row(&'a self, line: u64, record: &'a StringRecord) -> Result<Row<'a>> {
        let (found, expected) = (record.len(), self.header.len());
        if found != expected {
            let problem = format!("{found} fields where the header has {expected}");
            return Err(Error::Csv { path: self.path.to_owned(), line, problem });
        }
        Ok(Row { columns: self, line, record })
    }
}

impl Row<'_> {
    /// The text of the n-th needed column.
    pub(crate) fn text(&self, n: usize) -> &str {
        self.columns.places.get(n).and_then(|place| self.record.get(*place)).unwrap_or("")
    }

    /// The n-th needed column as a number.
    pub(crate) fn number<T: FromStr>(&self, n: usize, expected: &'static str) -> Result<T> {
        self.text(n).parse().map_err(|_| self.wrong(n, expected))
    }

    /// The n-th needed column as a number; empty means that it is not known.
    pub(crate) fn optional<T: FromStr>(&self, n: usize, expected: &'static str) -> Result<Option<T>> {
        if self.text(n).is_empty() { Ok(None) } else { self.number(n, expected).map(Some) }
    }

    /// Where a further column stands; `None` if it is absent, or empty in this row.
    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        let place = self.columns.header.iter().position(|column| column == name)?;
        self.record.get(place).is_some_and(|text| !text.is_empty()).then_some(place)
    }

    /// A column by its place in the file, as a number.
    pub(crate) fn number_at<T: FromStr>(&self, place: usize, expected: &'static str) -> Result<T> {
        let text = self.record.get(place).unwrap_or("");
        text.parse().map_err(|_| self.error(self.columns.header.get(place).unwrap_or("?"), text, expected))
    }

    /// The n-th needed column as the version of the file's layout.
    pub(crate) fn schema(&self, n: usize, known: u32) -> Result<u32> {
        let version = self.number(n, "a version number")?;
        if version > known {
            return Err(Error::TooNew { path: self.columns.path.to_owned(), version, known });
        }
        Ok(version)
    }

    /// The n-th needed column does not hold what it should.
    pub(crate) fn wrong(&self, n: usize, expected: &'static str) -> Error {
        self.error(self.columns.needed.get(n).unwrap_or(&"?"), self.text(n), expected)
    }

    fn error(&self, column: &str, value: &str, expected: &'static str) -> Error {
        let (path, line) = (self.columns.path.to_owned(), self.line);
        Error::Field { path, line, column: column.to_owned(), value: value.to_owned(), expected }
    }
}

/// A CSV file that is appended to; its header is written once, when the file is new.
#[derive(Debug)]
pub(crate) struct Appender {
    csv: csv::Writer<BufWriter<File>>,
    path: std::path::PathBuf,
}

impl Appender {
    /// Opens the file, new or with this very header.
    pub(crate) fn open(path: &Path, header: &[String]) -> Result<Self> {
        let file = File::options().append(true).create(true).open(path).map_err(Error::io(path, "append to it"))?;
        let (length, torn) = extent(path)?;
        let mut file = BufWriter::new(file);
        if length > 0 {
            check_header(path, header)?;
        }
        if torn {
            // What a crash left of a line must not swallow the next one.
            file.write_all(b"\n").map_err(Error::io(path, "append to it"))?;
        }
        let csv = csv::WriterBuilder::new().flexible(true).from_writer(file);
        let mut appender = Self { csv, path: path.to_owned() };
        if length == 0 {
            appender.write(header)?;
            appender.flush()?;
        }
        Ok(appender)
    }

    pub(crate) fn write(&mut self, fields: &[String]) -> Result<()> {
        let io = |e: csv::Error| Error::io(&self.path, "append to it")(e.into());
        self.csv.write_record(fields).map_err(io)
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.csv.flush().map_err(Error::io(&self.path, "append to it"))
    }
}

fn check_header(path: &Path, header: &[String]) -> Result<()> {
    let file = File::open(path).map_err(Error::io(path, "read it"))?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(BufReader::new(file));
    let found = reader.headers().map_err(|e| malformed(path, &e))?;
    if found.iter().eq(header.iter().map(String::as_str)) {
        return Ok(());
    }
    let problem = format!("its columns are not `{}`; move the file away to begin a new one", header.join(","));
    Err(Error::Csv { path: path.to_owned(), line: 1, problem })
}

/// The text of a value that may not be known: empty, not 0.
pub(crate) fn known<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |v| v.to_string())
}
