//! The commands that read a run, driven as a user drives them. None of them needs libtorch.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod bad_input;
mod ctl;
mod diff;
mod recorded;
mod report;
mod support;
mod terminal;
mod top;
mod top_cost;
mod writing;
