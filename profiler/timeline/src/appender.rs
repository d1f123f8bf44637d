//! A CSV file that is appended to.

use std::fs::{self, File, Metadata};
use std::io::{BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::table::{ends_torn, malformed};

/// Appends lines to a file; its header is written once, when the file is new.
#[derive(Debug)]
pub(crate) struct Appender {
    csv: csv::Writer<Whole>,
    path: PathBuf,
}

/// Lines that wait for a flush, and then go into the file with one write: other ranks append to the same file, and must not
/// get into the middle of a line.
#[derive(Debug)]
struct Whole {
    file: File,
    lines: Vec<u8>,
}

impl Write for Whole {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.lines.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        // What a full disk refuses is lost, not written twice.
        let lines = std::mem::take(&mut self.lines);
        self.file.write_all(&lines)
    }
}

impl Appender {
    /// Opens the file, new or with this very header.
    pub(crate) fn open(path: &Path, header: &[String]) -> Result<Self> {
        let file = open_held(path).map_err(Error::io(path, "append to it"))?;
        let (length, torn) = ends_torn(path)?;
        let mut file = Whole { file, lines: Vec::new() };
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

    /// Bytes in the file, without what waits to be flushed.
    pub(crate) fn length(&self) -> u64 {
        self.csv.get_ref().file.metadata().map_or(0, |of| of.len())
    }

    /// Keeps others from appending to the file, unless some do. Ends with what is returned.
    pub(crate) fn alone(&self) -> Option<Alone<'_>> {
        let file = &self.csv.get_ref().file;
        file.try_lock().is_ok().then_some(Alone(file))
    }
}

/// While it lives, no one else appends to the file.
#[derive(Debug)]
pub(crate) struct Alone<'a>(&'a File);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        // It was locked a moment ago, so the system can; and no one can be in the way.
        let _ = self.0.lock_shared();
    }
}

/// Opens a file to append to it, and holds it, so that another process does not put it away meanwhile.
fn open_held(path: &Path) -> std::io::Result<File> {
    loop {
        let file = File::options().append(true).create(true).open(path)?;
        // Where the file system has no locks no one is ever alone, and nothing is put away.
        if file.lock_shared().is_err() {
            return Ok(file);
        }
        let inode = |of: Metadata| (of.dev(), of.ino());
        if fs::metadata(path).is_ok_and(|of| file.metadata().is_ok_and(|own| inode(of) == inode(own))) {
            return Ok(file);
        }
    }
}

fn check_header(path: &Path, header: &[String]) -> Result<()> {
    let file = File::open(path).map_err(Error::io(path, "read it"))?;
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(BufReader::new(file));
    let found = reader.headers().map_err(|e| malformed(path, 1, &e))?;
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
