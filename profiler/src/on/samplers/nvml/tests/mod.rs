//! Simulated GPUs.

mod faults;
mod minute;
mod selecting;
mod simulated;
mod threads;
