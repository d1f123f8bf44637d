//! A simulated device that works in real time, and a recording that looks at it often.

use std::time::Duration;

use dflash_profiler::Level;
use dflash_profiler::sim::{SimClock, SimDevice};
use dflash_profiler::timeline::Timeline;
use dflash_profiler::timeline::record::Span;

use crate::support::Recording;

pub fn device(index: i16) -> SimDevice {
    SimDevice::new(index, SimClock::real()).offset_ns(-3_000_000_000).drift_ppm(5.0)
}

pub fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// A recording whose collector looks often.
pub fn recording(level: Level) -> Recording {
    Recording::with(|options| {
        options.level = level;
        options.write_every = ms(5);
        options.device.poll_every = ms(1);
        options.device.stride_below = Duration::ZERO;
    })
}

pub fn spans<'a>(timeline: &'a Timeline, name: &str) -> Vec<&'a Span> {
    timeline.spans.iter().filter(|span| timeline.name(span.name) == name).collect()
}
