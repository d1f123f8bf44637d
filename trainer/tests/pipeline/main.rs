//! The pipeline with several workers: what is learnt does not depend on how many there are.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod configs;
#[path = "../../torch/tests/shim/gpus.rs"]
mod devices;
mod drafters;
mod equality;
mod gpus;
mod linear;
mod simulated;
mod slurm;
mod support;
mod tau_curve;
