//! The command and the crates together.
mod reading;
