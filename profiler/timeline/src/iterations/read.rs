//! Reading iterations.csv with its parts.

use std::collections::VecDeque;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::{COLUMNS, IterationRow, parse};
use crate::error::{Error, Result};
use crate::parts;
use crate::table::Table;

/// The rows of iterations.csv, part after part, one in memory at a time. Made by [`iterations`].
pub struct Iterations {
    live: PathBuf,
    file: Option<File>,
    parts: VecDeque<PathBuf>,
    table: Option<Table>,
    notice: Option<String>,
}

impl std::fmt::Debug for Iterations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Iterations").field("live", &self.live).field("parts", &self.parts).finish_non_exhaustive()
    }
}

/// Reads iterations.csv and its parts row by row, without a last line that is still being written. After an error
/// nothing more comes.
///
/// # Errors
/// If there is no such file, or it lacks a column; what is wrong with a row comes in its place.
pub fn iterations(path: &Path) -> Result<Iterations> {
    let (parts, file) = parts::open(path)?;
    if parts.is_empty() && file.is_none() {
        return Err(Error::io(path, "read it")(ErrorKind::NotFound.into()));
    }
    let mut rows = Iterations { live: path.to_owned(), file, parts: parts.into(), table: None, notice: None };
    rows.table = rows.next_table()?;
    Ok(rows)
}

/// Reads iterations.csv and its parts, without a last line that is still being written.
pub fn read_iterations(path: &Path) -> Result<Vec<IterationRow>> {
    Ok(read_iterations_noting(path)?.0)
}

/// Reads iterations.csv and its parts; the second value says if a last, incomplete line was left out.
pub fn read_iterations_noting(path: &Path) -> Result<(Vec<IterationRow>, Option<String>)> {
    let mut rows = iterations(path)?;
    let all = rows.by_ref().collect::<Result<_>>()?;
    Ok((all, rows.notice))
}

impl Iterations {
    /// After the last row: whether a last, incomplete line was left out.
    #[must_use]
    pub fn notice(&self) -> Option<&str> {
        self.notice.as_deref()
    }

    fn next_table(&mut self) -> Result<Option<Table>> {
        if let Some(part) = self.parts.pop_front() {
            return match Table::open(&part, &COLUMNS) {
                // It has been packed since it was listed.
                Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => {
                    Table::open(&parts::packed(&part), &COLUMNS).map(Some)
                }
                opened => opened.map(Some),
            };
        }
        self.file.take().map(|file| Table::of(file, &self.live, &COLUMNS)).transpose()
    }

    fn next_row(&mut self) -> Result<Option<IterationRow>> {
        while let Some(table) = &mut self.table {
            if let Some(row) = table.next()? {
                return parse(&row).map(Some);
            }
            self.notice = table.notice().or(self.notice.take());
            self.table = self.next_table()?;
        }
        Ok(None)
    }
}

impl Iterator for Iterations {
    type Item = Result<IterationRow>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.next_row();
        if row.is_err() {
            (self.table, self.file) = (None, None);
            self.parts.clear();
        }
        row.transpose()
    }
}
