//! Tests of the reports over timelines and files that are built here.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod bad_input;
mod cost;
mod cpu;
mod diff;
mod diff_cost;
mod diff_sides;
mod flamegraph;
mod forms;
mod gaps;
mod instruments;
mod kernels;
mod runs;
mod stages;
mod support;
mod verdict;
