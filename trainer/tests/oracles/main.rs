//! The trainer against oracles: values of transformers, z-lab and SpecForge, recorded in tests/data.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod decode;
mod drafter;
mod optim;
mod support;
mod targets;
