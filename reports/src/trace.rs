//! A run as a trace for the viewers that there are: Perfetto's, and those that read Chrome's JSON.
//!
//! Below a process per rank stand its lanes, its GPUs with what each lane did on them, the items between lanes, and the
//! counters. Arrows lead from a put to its take. All ranks and segments are in one file, on one clock: the monotonic one
//! of the host. What was lost stands in the trace, too.

mod chrome;
mod content;
mod counts;
mod flows;
mod perfetto;
pub(crate) mod proto;
mod reach;
mod slices;
mod source;
mod streams;

pub use chrome::chrome;
pub use counts::Counts;
pub use perfetto::perfetto;
pub use source::Source;

use crate::window::Window;
use dflash_timeline::Timeline;

/// What is exported, and how it is called.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which part of the timeline; all by default. A slice of which a part lies in the window is exported whole.
    pub window: Window,
    /// The run's name.
    pub name: String,
    /// The run is being written: that its timeline has no end is no damage.
    pub live: bool,
}

/// What became of everything that was recorded, for the trace.
fn losses(timeline: &Timeline) -> [(&'static str, u64); 10] {
    let (totals, health) = (&timeline.totals, &timeline.health);
    [
        ("emitted", totals.emitted),
        ("written", totals.written),
        ("dropped", totals.dropped),
        ("open", totals.open),
        ("negative", totals.negative),
        ("unresolved", totals.unresolved),
        ("misplaced", totals.misplaced),
        ("bad_blocks", health.bad_blocks),
        ("skipped_bytes", health.skipped_bytes),
        ("ended", u64::from(health.ended)),
    ]
}
