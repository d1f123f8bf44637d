//! The commands that read a run, driven as a user drives them. None of them needs libtorch.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod bad_input;
mod browser;
mod ctl;
mod diff;
mod flamegraph;
mod live;
mod other_readers;
mod recorded;
mod report;
mod support;
pub mod terminal;
mod top;
mod top_cost;
mod top_memory;
mod top_replay;
mod top_text;
mod trace;
mod writing;
