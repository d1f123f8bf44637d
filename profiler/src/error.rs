//! Why a profiler cannot start.

use std::io;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a profiler cannot start. Later failures never reach the training: they are counted and said once.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The run directory cannot be written.
    #[error(transparent)]
    Timeline(#[from] dflash_timeline::Error),
    /// The system gave no thread.
    #[error("cannot start the thread dflash-writer: {0}; lower the number of threads, or raise `ulimit -u`")]
    Thread(io::Error),
}
