//! What can go wrong, with the file, the place in it and the way out.

use std::io;
use std::path::{Path, PathBuf};

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Every failure of this crate. Its text names the file and says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system said no.
    #[error("{}: cannot {action}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was tried, e.g. `read it`.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The path is no run directory.
    #[error("{} is not a run directory: run.json is missing; give a directory under runs/ (`dflash runs` lists them)", path.display())]
    NotARun {
        /// The path that was given.
        path: PathBuf,
    },
    /// There is no run to choose.
    #[error("{} holds no run; start one with `dflash train`, or name a directory with --runs", parent.display())]
    NoRuns {
        /// The directory that was searched.
        parent: PathBuf,
    },
    /// run.json cannot be understood.
    #[error("{}:{line}:{column}: not a run manifest: {problem}; restore it from a backup or remove the run", path.display())]
    Manifest {
        /// run.json.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What the parser said.
        problem: String,
    },
    /// A CSV file lacks a column.
    #[error("{}: column `{column}` is missing; the header must be `{expected}`", path.display())]
    MissingColumn {
        /// The CSV file.
        path: PathBuf,
        /// The column.
        column: String,
        /// All columns that are needed.
        expected: String,
    },
    /// A field of a CSV file cannot be understood.
    #[error("{}:{line}: column `{column}`: `{value}` is not {expected}; correct the line or remove it", path.display())]
    Field {
        /// The CSV file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// The column's name.
        column: String,
        /// What stands there.
        value: String,
        /// What should, e.g. `a whole number`.
        expected: &'static str,
    },
    /// A line of a CSV file is none.
    #[error("{}:{line}: {problem}; correct the line or remove it", path.display())]
    Csv {
        /// The CSV file.
        path: PathBuf,
        /// Line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// A file was written by a newer dflash.
    #[error("{}: written in format version {version}, this dflash reads up to {known}; update dflash", path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// The newest version that is understood.
        known: u32,
    },
}

impl Error {
    /// Wraps what the system said about `path`.
    pub(crate) fn io(path: &Path, action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { path: path.to_owned(), action, source }
    }
}
