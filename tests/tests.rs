//! The command and the crates together: one test program, a module a subject.

mod arrows;
#[cfg(feature = "train")]
mod bad_input;
mod completions;
#[cfg(feature = "train")]
mod full_disk;
mod help;
#[cfg(feature = "train")]
#[path = "../trainer/torch/tests/shim/ports.rs"]
mod ports;
#[cfg(feature = "train")]
mod random;
mod reading;
#[cfg(feature = "train")]
mod simulated;
#[cfg(feature = "train")]
mod training;
mod two_programs;
