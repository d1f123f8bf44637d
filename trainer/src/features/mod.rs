//! Hidden states on the disk: made once for a target and its texts, read back by every training on them.
//!
//! | in `DIR/KEY/` | what |
//! |---|---|
//! | `manifest.json` | layout, what the states were made from, rows, bytes, whether it was closed in good order |
//! | `states.bin` | each row's taps, `[tokens, width]` little-endian, one behind the other; a hole where none are yet |
//! | `made.txt` | a line for each batch that was made: `ROW:CRC32C` of each of its rows |
//! | `lock` | held by the one training that fills it |
//!
//! KEY is a hash of everything that decides the states: other ones lie in other folders. A batch counts once its line is
//! there, so that a training that was killed goes on with the same bits. After a power cut, which may keep a line and lose
//! its states, every row is read once and those that are not whole are made again.

mod error;
mod files;
mod manifest;

pub use error::FeatureError;
pub use manifest::Manifest;

use crate::data::Key;
use files::Files;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tch::{Kind, Tensor};

/// What is to be kept.
#[derive(Clone, Debug)]
pub struct Rows {
    /// Everything that decides the states.
    pub key: Key,
    /// Tokens of each row.
    pub lengths: Vec<u64>,
    /// Numbers a token.
    pub width: u64,
    /// Their kind.
    pub kind: Kind,
}

impl Rows {
    /// Bytes of all rows.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.lengths.iter().sum::<u64>() * self.row_bytes()
    }

    fn row_bytes(&self) -> u64 {
        self.width * self.kind.elt_size_in_bytes() as u64
    }
}

/// Hidden states on the disk.
#[derive(Debug)]
pub struct DiskFeatures {
    rows: Rows,
    /// Where each row begins in the file.
    offsets: Vec<u64>,
    files: Files,
    /// Checksums of the rows that are there.
    made: Mutex<HashMap<usize, u32>>,
}

impl DiskFeatures {
    /// Opens the states of `rows` below `root`, or begins them. All that lies there may take `most` bytes; `None`: any.
    ///
    /// # Errors
    /// They would take more; another training fills them; a file is not what was written.
    pub fn open(root: &Path, rows: Rows, most: Option<u64>) -> Result<Self, FeatureError> {
        let dir = root.join(&rows.key.digest[..16]);
        manifest::refuse_more(root, &dir, rows.bytes(), most)?;
        let files = Files::open(&dir, &rows)?;
        let offsets = rows.lengths.iter().scan(0, |end, length| {
            let begin = *end;
            *end += length * rows.row_bytes();
            Some(begin)
        });
        let found = files.read_made(rows.lengths.len())?;
        let opened = Self { offsets: offsets.collect(), rows, files, made: Mutex::new(found) };
        if opened.files.unclean() {
            opened.drop_torn()?;
        }
        Ok(opened)
    }

    /// Where they lie.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.files.directory()
    }

    /// Whether a row is there.
    #[must_use]
    pub fn has(&self, row: usize) -> bool {
        self.made().contains_key(&row)
    }

    /// How many rows are there, and how many there will be.
    #[must_use]
    pub fn progress(&self) -> (usize, usize) {
        (self.made().len(), self.rows.lengths.len())
    }

    /// Writes the rows of a batch, [tokens, width] each; they count together or not at all.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn write(&self, batch: &[(usize, Tensor)]) -> Result<(), FeatureError> {
        let mut sums = Vec::with_capacity(batch.len());
        for (row, states) in batch {
            let flat = states.to_kind(self.rows.kind).contiguous().view([-1]);
            let mut bytes = vec![0; flat.numel() * flat.kind().elt_size_in_bytes()];
            flat.copy_data_u8(&mut bytes, flat.numel());
            self.files.write_at(&bytes, self.offsets[*row])?;
            sums.push((*row, crc32c::crc32c(&bytes)));
        }
        self.files.note(&sums)?;
        self.made().extend(sums);
        Ok(())
    }

    /// A row that is there, [tokens, width].
    ///
    /// # Errors
    /// The file cannot be read, or does not hold what was written.
    pub fn read(&self, row: usize) -> Result<Tensor, FeatureError> {
        let sum = self.made().get(&row).copied();
        let bytes = self.bytes(row)?;
        if sum != Some(crc32c::crc32c(&bytes)) {
            return Err(self.files.damaged(format!("row {row} is not what was written")));
        }
        let shape = [self.rows.lengths[row] as i64, self.rows.width as i64];
        Tensor::f_from_data_size(&bytes, &shape, self.rows.kind).map_err(|e| self.files.damaged(e.to_string()))
    }

    /// Brings everything to the disk, and says so in the manifest.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn close(&self) -> Result<(), FeatureError> {
        let (made, all) = self.progress();
        self.files.close(&self.rows, made == all)
    }

    fn bytes(&self, row: usize) -> Result<Vec<u8>, FeatureError> {
        let mut bytes = vec![0; usize::try_from(self.rows.lengths[row] * self.rows.row_bytes()).unwrap_or(0)];
        self.files.read_at(&mut bytes, self.offsets[row])?;
        Ok(bytes)
    }

    /// Forgets the rows that a power cut has left without their states.
    fn drop_torn(&self) -> Result<(), FeatureError> {
        let claimed: Vec<(usize, u32)> = self.made().iter().map(|(&row, &sum)| (row, sum)).collect();
        let mut whole = Vec::with_capacity(claimed.len());
        for &(row, sum) in &claimed {
            if crc32c::crc32c(&self.bytes(row)?) == sum {
                whole.push((row, sum));
            }
        }
        if whole.len() < claimed.len() {
            // Also in the file: nobody looks again once this training has closed it.
            self.files.note_only(&whole)?;
            *self.made() = whole.into_iter().collect();
        }
        Ok(())
    }

    fn made(&self) -> MutexGuard<'_, HashMap<usize, u32>> {
        // A map is whole between two insertions.
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where states are kept if nobody says otherwise: beside the shards.
#[must_use]
pub fn beside(shards: &Path) -> PathBuf {
    let mut name = shards.file_name().unwrap_or_default().to_owned();
    name.push(".states");
    shards.with_file_name(name)
}

#[cfg(test)]
mod tests;
