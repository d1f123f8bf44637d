//! Simulated GPUs.

mod cost;
mod faults;
mod minute;
mod selecting;
mod simulated;
mod threads;
