use std::io;

use dflash_reports::timeline;

/// What can keep `dflash top` from showing a run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The run could not be read; the message names the file and the way out.
    #[error(transparent)]
    Timeline(#[from] timeline::Error),
    /// The stretch of time that was asked for is not one of this run.
    #[error(transparent)]
    Report(#[from] dflash_reports::Error),
    /// The terminal refused raw mode, drawing or reading.
    #[error("the terminal cannot be used: {0}; `dflash top --once` prints the same as text")]
    Terminal(#[from] io::Error),
    /// Another thread panicked, and the terminal was given back for its message.
    #[error("a thread of dflash panicked (its message stands above); please report it, with that message")]
    Panicked,
}

/// Shorthand of this crate.
pub type Result<T> = std::result::Result<T, Error>;
