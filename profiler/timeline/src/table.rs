//! Reading of CSV files whose errors name file, line and column; shared by iterations.csv and metrics.csv.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use csv::StringRecord;

use crate::error::{Error, Result};

/// A file's lines, one by one. It may be packed (`.zst`).
pub(crate) struct Table {
    path: PathBuf,
    needed: &'static [&'static str],
    /// Where the needed columns stand.
    places: Vec<usize>,
    /// The header as it stands in the file.
    header: StringRecord,
    reader: csv::Reader<Box<dyn Read + Send>>,
    record: StringRecord,
    /// Where the last record began, blank lines before it included.
    began: u64,
    /// Bytes that there were at the opening, if the last line lacks its newline: it is still being written, or torn.
    torn: Option<u64>,
    /// Says that a last line was left out.
    notice: Option<String>,
}

/// One line of the file.
pub(crate) struct Row<'a>(&'a Table);

impl Table {
    /// Opens a file that must have the needed columns.
    pub(crate) fn open(path: &Path, needed: &'static [&'static str]) -> Result<Self> {
        let file = File::open(path).map_err(Error::io(path, "read it"))?;
        Self::of(file, path, needed)
    }

    /// The same of a file that is open; `path` is where it lay.
    pub(crate) fn of(file: File, path: &Path, needed: &'static [&'static str]) -> Result<Self> {
        let (length, torn) =
            if is_packed(path) { (0, false) } else { ends(&file).map_err(Error::io(path, "read it"))? };
        let bytes = bytes(file, path).map_err(Error::io(path, "read it"))?;
        // A run may append meanwhile; what it adds after this moment is for the next reading.
        let bytes: Box<dyn Read + Send> = if is_packed(path) { bytes } else { Box::new(bytes.take(length)) };
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(bytes);
        let header = reader.headers().map_err(|e| malformed(path, 1, &e))?.clone();
        let place = |name: &&str| {
            header.iter().position(|column| column == *name).ok_or_else(|| Error::MissingColumn {
                path: path.to_owned(),
                column: (*name).to_owned(),
                expected: needed.join(","),
            })
        };
        let places = needed.iter().map(place).collect::<Result<_>>()?;
        let (record, torn) = (StringRecord::new(), torn.then_some(length));
        Ok(Self { path: path.to_owned(), needed, places, header, reader, record, began: 0, torn, notice: None })
    }

    /// The next line; `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Row<'_>>> {
        self.began = self.reader.position().byte();
        let more = self.reader.read_record(&mut self.record);
        if self.torn.is_some_and(|length| self.reader.position().byte() >= length) {
            let (path, line) = (self.path.display(), self.line());
            self.notice = Some(format!("{path}:{line}: the last line is not complete and was left out"));
            return Ok(None);
        }
        if !more.map_err(|e| malformed(&self.path, self.line(), &e))? {
            return Ok(None);
        }
        let (found, expected) = (self.record.len(), self.header.len());
        if found != expected {
            let problem = format!("{found} fields where the header has {expected}");
            return Err(Error::Csv { path: self.path.clone(), line: self.line(), problem });
        }
        Ok(Some(Row(self)))
    }

    /// What there is to say about the end of the file.
    pub(crate) fn notice(&mut self) -> Option<String> {
        self.notice.take()
    }

    /// The line that the last record begins in, counted anew: blank lines are in no record.
    fn line(&self) -> u64 {
        let count = || {
            let mut bytes = BufReader::new(bytes(File::open(&self.path)?, &self.path)?);
            let (mut at, mut line) = (0, 1);
            loop {
                let buffer = bytes.fill_buf()?;
                for byte in buffer {
                    if at >= self.began && !matches!(byte, b'\n' | b'\r') {
                        return Ok(line);
                    }
                    line += u64::from(*byte == b'\n');
                    at += 1;
                }
                let read = buffer.len();
                if read == 0 {
                    return Ok::<u64, std::io::Error>(line);
                }
                bytes.consume(read);
            }
        };
        count().unwrap_or_else(|_| self.reader.position().line())
    }
}

/// All rows of a file, and what there is to say about its end.
pub(crate) fn read<T>(
    path: &Path,
    needed: &'static [&'static str],
    mut parse: impl FnMut(&Row<'_>) -> Result<T>,
) -> Result<(Vec<T>, Option<String>)> {
    let (mut table, mut rows) = (Table::open(path, needed)?, Vec::new());
    while let Some(row) = table.next()? {
        rows.push(parse(&row)?);
    }
    Ok((rows, table.notice()))
}

/// Whether a file is packed, as its name says.
pub(crate) fn is_packed(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "zst")
}

/// A file's bytes, unpacked.
pub(crate) fn bytes(file: File, path: &Path) -> std::io::Result<Box<dyn Read + Send>> {
    Ok(if is_packed(path) { Box::new(zstd::Decoder::new(file)?) } else { Box::new(file) })
}

/// Length of a file, and whether its last line lacks a newline.
pub(crate) fn ends_torn(path: &Path) -> Result<(u64, bool)> {
    File::open(path).and_then(|file| ends(&file)).map_err(Error::io(path, "read it"))
}

fn ends(mut file: &File) -> std::io::Result<(u64, bool)> {
    let length = file.seek(SeekFrom::End(0))?;
    let mut last = *b"\n";
    if length > 0 {
        file.seek(SeekFrom::Start(length - 1))?;
        file.read_exact(&mut last)?;
    }
    file.seek(SeekFrom::Start(0))?;
    Ok((length, last != *b"\n"))
}

pub(crate) fn malformed(path: &Path, line: u64, error: &csv::Error) -> Error {
    let problem = match error.kind() {
        csv::ErrorKind::Utf8 { .. } => "not UTF-8".to_owned(),
        csv::ErrorKind::Io(e) => format!("cannot be read: {e}"),
        _ => error.to_string(),
    };
    Error::Csv { path: path.to_owned(), line, problem }
}

impl Row<'_> {
    /// The text of the n-th needed column.
    pub(crate) fn text(&self, n: usize) -> &str {
        self.0.places.get(n).and_then(|place| self.0.record.get(*place)).unwrap_or("")
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
        let place = self.0.header.iter().position(|column| column == name)?;
        self.0.record.get(place).is_some_and(|text| !text.is_empty()).then_some(place)
    }

    /// A column by its place in the file, as a number.
    pub(crate) fn number_at<T: FromStr>(&self, place: usize, expected: &'static str) -> Result<T> {
        let text = self.0.record.get(place).unwrap_or("");
        text.parse().map_err(|_| self.error(self.0.header.get(place).unwrap_or("?"), text, expected))
    }

    /// The n-th needed column as the version of the file's layout.
    pub(crate) fn schema(&self, n: usize, known: u32) -> Result<u32> {
        let version = self.number(n, "a version number")?;
        if version > known {
            return Err(Error::TooNew { path: self.0.path.clone(), version, known });
        }
        Ok(version)
    }

    /// The n-th needed column does not hold what it should.
    pub(crate) fn wrong(&self, n: usize, expected: &'static str) -> Error {
        self.error(self.0.needed.get(n).unwrap_or(&"?"), self.text(n), expected)
    }

    fn error(&self, column: &str, value: &str, expected: &'static str) -> Error {
        let (path, line) = (self.0.path.clone(), self.0.line());
        Error::Field { path, line, column: column.to_owned(), value: value.to_owned(), expected }
    }
}
