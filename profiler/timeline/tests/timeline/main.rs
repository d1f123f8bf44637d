//! Files as they are, and as crashes, disks and people leave them.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod any_records;
mod clocks;
mod csv;
mod damage;
mod drifts;
mod faults;
mod full;
mod fuzz;
mod golden;
mod keep;
mod known;
mod later;
mod order;
mod parts;
mod roundtrip;
mod run_dir;
mod size;
mod support;
mod tail;
mod wants;

#[path = "../../examples/stream_rate/stream.rs"]
mod stream;
#[path = "../../examples/stream_rate/write.rs"]
mod write;
