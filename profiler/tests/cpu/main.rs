//! CPU samples under spans, and the stacks of all threads now.

#![cfg(feature = "spans")]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod profile;
mod sampling;
mod stacks;
mod support;
