//! The files of kept hidden states.

use super::manifest::Manifest;
use super::{FeatureError, Rows};
use crate::disk::Lock;
use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

const STATES: &str = "states.bin";
const MADE: &str = "made.txt";
const LOCK: &str = "lock";

/// Open files of one folder.
#[derive(Debug)]
pub(super) struct Files {
    dir: PathBuf,
    states: File,
    /// `None`: everything is there, and nothing is written.
    made: Option<File>,
    unclean: bool,
    /// What the manifest says of them once something is written; taken then.
    opened: Mutex<Option<Manifest>>,
    /// One training fills a folder.
    _lock: Option<Lock>,
}

impl Files {
    /// Opens a folder, or begins it.
    pub(super) fn open(dir: &Path, rows: &Rows) -> Result<Self, FeatureError> {
        let found = Manifest::read(dir)?;
        if let Some(problem) = found.as_ref().and_then(|found| found.problem(rows)) {
            return Err(FeatureError::damaged(dir, super::manifest::FILE, problem));
        }
        match found {
            // Whole ones change no more: as many trainings as wish may read them.
            Some(found) if found.complete && found.clean => Self::reading(dir, rows),
            found => Self::filling(dir, rows, found.is_some_and(|found| !found.clean)),
        }
    }

    fn reading(dir: &Path, rows: &Rows) -> Result<Self, FeatureError> {
        let path = dir.join(STATES);
        let states = File::open(&path).map_err(FeatureError::io("read", &path))?;
        let opened = Mutex::default();
        let files = Self { dir: dir.to_owned(), states, made: None, unclean: false, opened, _lock: None };
        files.check_length(rows)?;
        Ok(files)
    }

    fn filling(dir: &Path, rows: &Rows, unclean: bool) -> Result<Self, FeatureError> {
        fs::create_dir_all(dir).map_err(FeatureError::io("create", dir))?;
        let path = dir.join(LOCK);
        let lock = Lock::take(&path).map_err(FeatureError::io("write", &path))?;
        let lock = lock.ok_or_else(|| FeatureError::Busy { dir: dir.to_owned() })?;
        let open = |name: &str, append: bool| {
            let path = dir.join(name);
            let mut options = OpenOptions::new();
            options.read(true).create(true);
            if append {
                options.append(true)
            } else {
                options.write(true).truncate(false)
            };
            options.open(&path).map_err(FeatureError::io("write", &path))
        };
        let fresh = !dir.join(super::manifest::FILE).exists();
        let (states, made) = (open(STATES, false)?, open(MADE, true)?);
        if fresh {
            // What a begin that was interrupted has left says nothing.
            made.set_len(0).and_then(|()| states.set_len(rows.bytes())).map_err(FeatureError::io("write", dir))?;
        }
        let opened = Mutex::new(Some(Manifest::of(rows, false, false)));
        let files = Self { dir: dir.to_owned(), states, made: Some(made), unclean, opened, _lock: Some(lock) };
        files.check_length(rows)?;
        Ok(files)
    }

    fn check_length(&self, rows: &Rows) -> Result<(), FeatureError> {
        let path = self.dir.join(STATES);
        let length = self.states.metadata().map_err(FeatureError::io("read", &path))?.len();
        if length == rows.bytes() {
            return Ok(());
        }
        Err(self.damaged(format!("it has {length} bytes, {} were written", rows.bytes())))
    }

    pub(super) fn directory(&self) -> &Path {
        &self.dir
    }

    /// Its last writer has not closed it: a power cut may have kept lines and lost states.
    pub(super) fn unclean(&self) -> bool {
        self.unclean
    }

    pub(super) fn damaged(&self, problem: impl Into<String>) -> FeatureError {
        FeatureError::damaged(&self.dir, STATES, problem)
    }

    /// A training that has only opened them leaves no trace.
    fn begin_writing(&self) -> Result<(), FeatureError> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner).take();
        opened.map_or(Ok(()), |opened| opened.write(&self.dir))
    }

    fn untouched(&self) -> bool {
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    pub(super) fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), FeatureError> {
        self.begin_writing()?;
        self.states.write_all_at(bytes, offset).map_err(FeatureError::io("write", &self.dir.join(STATES)))
    }

    pub(super) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<(), FeatureError> {
        self.states.read_exact_at(bytes, offset).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => self.damaged("it is cut off"),
            _ => FeatureError::io("read", &self.dir.join(STATES))(error),
        })
    }

    /// Makes these the only rows that are there.
    pub(super) fn note_only(&self, rows: &[(usize, u32)]) -> Result<(), FeatureError> {
        self.begin_writing()?;
        let Some(made) = &self.made else { return Ok(()) };
        made.set_len(0).map_err(FeatureError::io("write", &self.dir.join(MADE)))?;
        rows.iter().try_for_each(|row| self.note(std::slice::from_ref(row)))
    }

    /// Adds a line for the rows of a batch, in one piece.
    pub(super) fn note(&self, rows: &[(usize, u32)]) -> Result<(), FeatureError> {
        let words: Vec<String> = rows.iter().map(|(row, sum)| format!("{row}:{sum:08x}")).collect();
        let line = words.join(" ") + "\n";
        let Some(mut made) = self.made.as_ref() else { return Ok(()) };
        made.write_all(line.as_bytes()).map_err(FeatureError::io("write", &self.dir.join(MADE)))
    }

    /// The rows that are there, of `rows` in all. A last line without its end is of a batch that was not finished.
    pub(super) fn read_made(&self, rows: usize) -> Result<HashMap<usize, u32>, FeatureError> {
        let path = self.dir.join(MADE);
        let text = fs::read_to_string(&path).map_err(FeatureError::io("read", &path))?;
        let (whole, torn) = text.split_at(text.rfind('\n').map_or(0, |end| end + 1));
        if let Some(made) = self.made.as_ref().filter(|_| !torn.is_empty()) {
            made.set_len(whole.len() as u64).map_err(FeatureError::io("write", &path))?;
        }
        let parse = |word: &str| {
            let (row, sum) = word.split_once(':')?;
            let row = row.parse().ok().filter(|row| *row < rows)?;
            Some((row, u32::from_str_radix(sum, 16).ok()?))
        };
        let wrong = |word: &str| FeatureError::damaged(&self.dir, MADE, format!("`{word}` is no row and its checksum"));
        whole.split_whitespace().map(|word| parse(word).ok_or_else(|| wrong(word))).collect()
    }

    pub(super) fn close(&self, rows: &Rows, complete: bool) -> Result<(), FeatureError> {
        let Some(made) = self.made.as_ref().filter(|_| self.unclean || !self.untouched()) else { return Ok(()) };
        self.states.sync_all().and_then(|()| made.sync_all()).map_err(FeatureError::io("write", &self.dir))?;
        Manifest::of(rows, complete, true).write(&self.dir)
    }
}
