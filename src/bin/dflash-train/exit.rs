//! Exit codes, how a trainer's error finds its own, and what sets those of signals.

pub use dflash::exit::{BAD_INPUT, FAILED, FINE};

use anyhow::{Context, Error, Result};
use dflash::exit::WhileRunning;
use dflash_sys::StopFlag;
use dflash_trainer::TrainError;

/// A trainer's error, with its exit code.
pub fn trainer(error: TrainError) -> Error {
    if error.while_running() { WhileRunning(error.into()).into() } else { error.into() }
}

/// The flag that the first SIGINT, SIGTERM, SIGHUP or SIGUSR1 sets; a second of the first two ends the process at once.
pub fn stop_flag() -> Result<StopFlag> {
    dflash_sys::install_stop_flag().context("cannot install the signal handlers")
}
