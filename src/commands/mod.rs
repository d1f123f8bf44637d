//! One file per subcommand: parse, call one library function, pick the exit code.

pub mod completions;
pub mod ctl;
pub mod diff;
#[cfg(feature = "train")]
pub mod doctor;
pub mod dump;
#[cfg(feature = "train")]
pub mod eval;
#[cfg(feature = "train")]
pub mod export;
pub mod flamegraph;
#[cfg(feature = "train")]
pub mod prepare;
pub mod report;
pub mod runs;
pub mod top;
pub mod trace;
#[cfg(feature = "train")]
pub mod train;
