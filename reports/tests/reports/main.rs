//! Tests of the reports over timelines and files that are built here.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod bad_input;
mod busy;
mod changes;
mod clocks;
mod cost;
mod cpu;
mod cut;
mod diff;
mod diff_cost;
mod diff_sides;
mod flamegraph;
mod flamegraph_forms;
mod flamegraph_pprof;
mod forms;
mod gaps;
mod instruments;
mod kernels;
mod odd;
mod page;
mod pipeline;
mod recorded;
mod runs;
mod sources;
mod speed;
mod stages;
mod streamed;
mod support;
mod torn;
mod trace;
mod trace_pieces;
mod trace_reader;
mod trace_streams;
mod verdict;
