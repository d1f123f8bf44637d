//! A run that goes on, controlled by a client: over its socket, as `dflash ctl` does.

#![cfg(feature = "spans")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod abuse;
mod asks;
mod kernels;
mod socket;
mod support;
