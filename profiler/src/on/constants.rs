//! Values that hold for the whole recording: said again and again, since `keep` deletes what was said first, and who looks
//! at a part of the timeline finds nothing that stands before it.

use std::time::{Duration, Instant};

use super::hub::{Hub, lock};
use super::output::Output;

/// How often they are said again.
const EVERY: Duration = Duration::from_secs(10);

/// When the stream has heard of them.
#[derive(Debug, Default)]
pub(crate) struct Constants {
    /// How many there were, in which segment, when.
    said: Option<(usize, u32, Instant)>,
}

impl Constants {
    /// Says them, if it is time: at once when one has come or a segment has begun.
    pub(crate) fn say(&mut self, hub: &Hub, out: &mut Output) {
        let constants = lock(&hub.constants);
        let (count, segment) = (constants.len(), out.segment());
        let fresh =
            |(known, at, when): &(usize, u32, Instant)| (*known, *at) == (count, segment) && when.elapsed() < EVERY;
        if constants.is_empty() || self.said.as_ref().is_some_and(fresh) {
            return;
        }
        self.said = Some((count, segment, Instant::now()));
        let time_ns = dflash_sys::monotonic_ns();
        constants.iter().for_each(|(name, unit, value)| out.own_sample(name, unit, time_ns, *value));
    }
}
