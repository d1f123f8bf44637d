//! The trainer against oracles: values of transformers, z-lab and SpecForge, recorded in tests/data.

mod decode;
mod drafter;
mod optim;
mod support;
mod targets;
