//! Recording, with the feature `spans`.
//!
//! The hot path is `level` (off?), `span` (guard), `lane` (thread-local, ring) and `open` (the lane's stack). Beyond the
//! ring, on the thread `dflash-writer`: `feed` (ticks to nanoseconds), `output` (stream and iterations.csv), `writer`.

mod clock;
mod clock_map;
mod cpu;
mod event;
mod feed;
mod hub;
mod iteration;
mod lane;
mod level;
mod open;
mod output;
mod profiler;
mod rows;
mod sampler;
mod site;
mod span;
mod stats;
mod writer;

pub use iteration::{IterationGuard, begin_iteration};
pub use lane::{Lane, LaneGuard, flow_put, flow_take, take_stats};
pub use level::{level, set_level};
pub use profiler::{Counter, Profiler};
pub use site::Site;
pub use span::SpanGuard;
