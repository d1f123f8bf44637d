//! What several kinds of folders need of the disk.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::Path;

/// A lock that ends with its value, or with the process, however that ends.
#[derive(Debug)]
pub(crate) struct Lock {
    /// `None`: the file system has no locks, and nobody is kept out.
    _file: Option<File>,
}

impl Lock {
    /// Takes the lock of a file, which is made; `None`: somebody else has it.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn take(path: &Path) -> io::Result<Option<Self>> {
        let file = File::create(path)?;
        Ok(match file.try_lock() {
            Ok(()) => Some(Self { _file: Some(file) }),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Error(_)) => Some(Self { _file: None }),
        })
    }
}

/// Replaces a file; whoever reads it meanwhile, or after a power cut, sees the old one or the new one, whole.
///
/// # Errors
/// The disk refuses; what was there before still is.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let beside = path.with_extension("part");
    let mut file = File::create(&beside)?;
    file.write_all(text.as_bytes())?;
    // A name without its content would be worse than the old one.
    file.sync_all()?;
    fs::rename(&beside, path)
}
