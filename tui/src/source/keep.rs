//! How far back a live run is kept in memory: half an hour, or less if that would be too much.

use std::mem::size_of;

use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::{Flow, Iteration, Sample, Span, StackSample};

use crate::state::extent;

/// The most that is kept, and the least, nanoseconds.
const LONGEST: u64 = 1800 * 1_000_000_000;
const SHORTEST: u64 = 10 * 1_000_000_000;
/// Bytes of records that are kept at most.
const BYTES: usize = 20 << 20;

/// How long to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keep {
    ns: u64,
    bytes: usize,
}

impl Default for Keep {
    fn default() -> Self {
        Self::one_of(1)
    }
}

impl Keep {
    /// Of one of so many runs, which share the room.
    #[must_use]
    pub fn one_of(count: usize) -> Self {
        Self { ns: LONGEST, bytes: BYTES / count.max(1) }
    }

    /// Nanoseconds to keep.
    #[must_use]
    pub fn nanoseconds(self) -> u64 {
        self.ns
    }

    /// Nanoseconds of a recording as dense as `timeline` that fit, as far as that can be told.
    #[must_use]
    pub fn fitting(self, timeline: &Timeline) -> i64 {
        let (first, last) = extent(timeline).unwrap_or_default();
        let dense = last.abs_diff(first) as f64 / bytes(timeline).max(1) as f64;
        ((dense * self.bytes as f64) as i64).max(SHORTEST as i64)
    }

    /// Shortens it if `timeline` has become too much; whether it did. It is not lengthened again: what is gone is gone, and
    /// a run does not record less later on.
    pub fn shorten(&mut self, timeline: &Timeline) -> bool {
        let bytes = bytes(timeline);
        bytes > self.bytes && self.shorten_to(bytes, extent(timeline))
    }

    fn shorten_to(&mut self, bytes: usize, extent: Option<(i64, i64)>) -> bool {
        let Some((first, last)) = extent.filter(|_| bytes > self.bytes && self.ns > SHORTEST) else { return false };
        // Somewhat less than fits, so that it is not shortened again at once.
        let fits = last.abs_diff(first) as f64 * (self.bytes as f64 / bytes as f64) * 0.8;
        self.ns = (fits as u64).clamp(SHORTEST, self.ns);
        true
    }
}

/// What the records take, about.
fn bytes(timeline: &Timeline) -> usize {
    timeline.spans.len() * size_of::<Span>()
        + timeline.iterations.len() * size_of::<Iteration>()
        + timeline.samples.len() * size_of::<Sample>()
        + timeline.flows.len() * size_of::<Flow>()
        + timeline.stacks.len() * (size_of::<StackSample>() + 256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_shortens_to_what_fits_and_no_further_than_the_least() {
        let mut keep = Keep::default();
        let minute = Some((0, 60_000_000_000));
        assert!(!keep.shorten_to(BYTES, minute));
        assert!(keep.shorten_to(2 * BYTES, minute));
        assert_eq!(keep.nanoseconds(), 24_000_000_000);
        assert!(keep.shorten_to(1000 * BYTES, minute));
        assert_eq!(keep.nanoseconds(), SHORTEST);
        assert!(!keep.shorten_to(1000 * BYTES, minute));
    }
}
