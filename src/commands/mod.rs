//! One file per subcommand: parse, call one library function, pick the exit code.

pub mod completions;
pub mod ctl;
pub mod diff;
pub mod dump;
pub mod flamegraph;
pub mod report;
pub mod runs;
pub mod top;
pub mod trace;
