//! Recording, with the feature `spans`.
//!
//! The hot path is `level` (off?), `span` (guard), `lane` (thread-local, ring) and `open` (the lane's stack). Beyond the
//! ring, on the thread `dflash-writer`: `feed` (ticks to nanoseconds), `output` (stream and iterations.csv), `account`
//! (what became of every record), `writer`.
//!
//! `device_span` and `device` add the time on a device, `allocator` what its allocator did, `cost` what all of this costs.

mod account;
mod allocator;
mod clock;
mod clock_map;
mod constants;
mod control;
mod cost;
mod cpu;
mod device;
mod device_span;
mod event;
mod feed;
mod hub;
mod iteration;
mod lane;
mod level;
mod open;
mod output;
mod patience;
mod profiler;
mod remarks;
mod rows;
mod samplers;
mod site;
mod span;
mod stats;
mod threads;
mod trouble;
mod writer;

pub use control::Requests;
pub use device_span::DeviceSpanGuard;
pub use iteration::{IterationGuard, begin_iteration};
pub use lane::{Lane, LaneGuard, add_time, flow_put, flow_take, open_span, take_stats};
pub use level::{level, set_level};
pub use profiler::{Counter, Profiler};
pub use samplers::gpu_details;
pub use site::Site;
pub use span::SpanGuard;
