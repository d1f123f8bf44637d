//! iterations.csv as bytes, file after file: for whoever copies its lines without a need to understand all of them.

use std::fs::File;
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::parts;
use crate::table;

/// A part of iterations.csv, or its live file.
#[derive(Debug)]
pub struct IterationsFile {
    path: PathBuf,
    /// Open already if it is the live one: it may be put away meanwhile.
    live: Option<File>,
}

/// The files of iterations.csv in the order of their rows; none if the run has not written a row yet.
///
/// # Errors
/// If the folder cannot be listed.
pub fn iterations_files(path: &Path) -> Result<Vec<IterationsFile>> {
    let (parts, live) = parts::open(path)?;
    let parts = parts.into_iter().map(|path| IterationsFile { path, live: None });
    Ok(parts.chain(live.map(|file| IterationsFile { path: path.to_owned(), live: Some(file) })).collect())
}

impl IterationsFile {
    /// A file that somebody names; no parts are looked for beside it.
    #[must_use]
    pub fn at(path: &Path) -> Self {
        Self { path: path.to_owned(), live: None }
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its bytes up to its last newline, and whether a line that is not complete follows. What is appended meanwhile is for
    /// the next reading.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn open(self) -> Result<(Box<dyn Read + Send>, bool)> {
        let (file, path) = match self.live {
            Some(file) => (file, self.path),
            None => match File::open(&self.path) {
                // It has been packed since it was listed.
                Err(e) if e.kind() == ErrorKind::NotFound => {
                    let packed = parts::packed(&self.path);
                    let Ok(file) = File::open(&packed) else { return Err(io(&self.path)(e)) };
                    (file, packed)
                }
                opened => (opened.map_err(io(&self.path))?, self.path),
            },
        };
        if table::is_packed(&path) {
            return Ok((table::bytes(file, &path).map_err(io(&path))?, false));
        }
        let (whole, torn) = whole_lines(file).map_err(io(&path))?;
        Ok((Box::new(whole), torn))
    }
}

fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Error + '_ {
    Error::io(path, "read it")
}

/// A file without what follows its last newline, and whether something does.
fn whole_lines(mut file: File) -> std::io::Result<(impl Read + Send, bool)> {
    const CHUNK: u64 = 1 << 16;
    let length = file.seek(SeekFrom::End(0))?;
    let (mut end, mut whole) = (length, 0);
    let mut chunk = Vec::new();
    while end > 0 && whole == 0 {
        let begin = end.saturating_sub(CHUNK);
        file.seek(SeekFrom::Start(begin))?;
        chunk.clear();
        Read::by_ref(&mut file).take(end - begin).read_to_end(&mut chunk)?;
        whole = chunk.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| begin + at as u64 + 1);
        end = begin;
    }
    file.seek(SeekFrom::Start(0))?;
    Ok((file.take(whole), length > whole))
}
