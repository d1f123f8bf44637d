//! Appending to iterations.csv, and putting it away in parts.

use std::fs;
use std::path::{Path, PathBuf};

use super::{COLUMNS, IterationRow, TOTAL, fields};
use crate::appender::Appender;
use crate::error::Result;
use crate::pack::Packer;
use crate::parts;
use crate::table::is_packed;

/// How iterations.csv is put away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartOptions {
    /// Bytes after which the file becomes a part and a new one begins; `None`: never.
    pub part_bytes: Option<u64>,
    /// Whether parts are packed, on a thread of its own.
    pub pack: bool,
}

impl Default for PartOptions {
    /// Packed parts of 32 MB: a quarter of an hour at 400 rows a second.
    fn default() -> Self {
        Self { part_bytes: Some(32 << 20), pack: true }
    }
}

/// Appends to iterations.csv.
#[derive(Debug)]
pub struct IterationsWriter {
    csv: Appender,
    path: PathBuf,
    options: PartOptions,
    /// The last row ended an iteration: no iteration is torn between parts.
    whole: bool,
    /// Length at which the file is put away.
    limit: u64,
    packer: Option<Packer>,
}

impl IterationsWriter {
    /// Opens the file to append to it; a new one gets its header. Parts are put away and packed as by
    /// [`PartOptions::default`].
    pub fn open(path: &Path) -> Result<Self> {
        Self::with_options(path, PartOptions::default())
    }

    /// Opens the file to append to it; a new one gets its header. Parts that an earlier attempt left plain are packed.
    pub fn with_options(path: &Path, options: PartOptions) -> Result<Self> {
        let limit = options.part_bytes.unwrap_or(u64::MAX);
        let csv = Appender::open(path, &COLUMNS.map(str::to_owned))?;
        let mut writer = Self { csv, path: path.to_owned(), options, whole: true, limit, packer: None };
        // Another process that appends is packing, too.
        let alone = writer.csv.alone();
        let left = if alone.is_some() { parts::left_over(path)? } else { Vec::new() };
        drop(alone);
        left.into_iter().for_each(|part| writer.pack(part));
        Ok(writer)
    }

    /// Appends one row to the buffer.
    pub fn write(&mut self, row: &IterationRow) -> Result<()> {
        self.whole = row.stage == TOTAL;
        self.csv.write(&fields(row))
    }

    /// Hands the buffer to the system, and puts the file away if it is large enough and the last row ended an iteration.
    pub fn flush(&mut self) -> Result<()> {
        self.csv.flush()?;
        if self.whole && self.csv.length() >= self.limit {
            self.put_away()?;
        }
        Ok(())
    }

    /// CPU time of the thread that packs parts, nanoseconds, after each part.
    #[must_use]
    pub fn pack_cpu_ns(&self) -> u64 {
        self.packer.as_ref().map_or(0, Packer::cpu_ns)
    }

    /// Why a part could not be packed, if so. It stays plain, and is read all the same.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.packer.as_ref().and_then(Packer::problem)
    }

    fn put_away(&mut self) -> Result<()> {
        let part_bytes = self.options.part_bytes.unwrap_or(u64::MAX);
        // If it cannot be done now, the file just goes on growing.
        self.limit = self.csv.length().saturating_add(part_bytes);
        let Some(alone) = self.csv.alone() else { return Ok(()) };
        let number = parts::list(&self.path)?.last_key_value().map_or(1, |(last, _)| last + 1);
        let part = parts::plain(&self.path, number);
        if fs::rename(&self.path, &part).is_err() {
            return Ok(());
        }
        let next = Appender::open(&self.path, &COLUMNS.map(str::to_owned))?;
        drop(alone);
        (self.csv, self.limit) = (next, part_bytes);
        self.pack(part);
        Ok(())
    }

    fn pack(&mut self, part: PathBuf) {
        if self.options.pack && !is_packed(&part) {
            self.packer = self.packer.take().or_else(Packer::start);
            if let Some(packer) = &self.packer {
                packer.pack(part);
            }
        }
    }
}
