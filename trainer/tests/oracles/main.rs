//! The trainer against oracles: values of transformers, z-lab and SpecForge, recorded in tests/data, and brute force.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod case;
mod checkpointing;
mod drafter;
mod optim;
mod parity;
mod sampling;
mod step;
mod support;
mod targets;
