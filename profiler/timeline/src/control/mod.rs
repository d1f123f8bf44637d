//! Control of a run while it goes on: what may be asked over its unix socket, and the client that asks.
//!
//! The bytes are described at the top of `protocol.rs`. The server is the profiler's, in the training process; the
//! client needs nothing of it, so that any reading command may use it.

mod client;
mod connect;
mod error;
mod kernels;
mod protocol;
mod status;

pub use client::Client;
pub use connect::{connect, of_rank};
pub use error::{Error, Result};
pub use kernels::{KERNELS_SCHEMA, KernelWindow};
pub use protocol::{Answer, Ask, LONGEST_REQUEST, Request};
pub use status::{Cost, CpuReport, LaneStatus, SpanAge, Status, ThreadStack};
