//! The shim over libtorch. What needs a GPU says that it was skipped where there is none.

#![expect(clippy::print_stderr, reason = "a skipped test says so, and a test on a GPU what it saw")]

mod absent;
mod allocator;
mod capture;
mod capture_gpu;
mod events;
mod streams;
mod support;
