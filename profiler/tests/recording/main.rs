//! What a program records is what is read back.

#![cfg(feature = "spans")]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod accounts;
mod allocator;
mod clocks;
mod cost;
mod device;
mod device_clock;
mod device_faults;
mod device_support;
mod disk;
mod forks;
mod killed;
mod live;
mod names;
mod stats;
mod structure;
mod support;
