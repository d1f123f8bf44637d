//! What a loop calls on its lane, beside spans and iterations.

use std::time::Duration;

use dflash_timeline::record::FlowEnd;

use super::with;
use crate::Stat;
use crate::on::event::Event;
use crate::on::level;

/// Notes that a hand-off was put on its way by this lane.
pub fn flow_put(id: u64) {
    flow(id, FlowEnd::Put);
}

/// Notes that a hand-off was taken by this lane; `id` is the one it was put with.
pub fn flow_take(id: u64) {
    flow(id, FlowEnd::Take);
}

fn flow(id: u64, end: FlowEnd) {
    if level::current() != 0 {
        with(|lane| {
            let at = lane.clock.ticks();
            lane.emit(Event::Flow { end, id, at });
        });
    }
}

/// What the calling thread's lane spent on each stage since the last call: stages in the order of their first use, then
/// what [`add_time`] added, then `residue` and `total`. Of stages, only iterations of kind `Train` count; empty if there
/// was nothing.
#[must_use]
pub fn take_stats() -> Vec<Stat> {
    with(|lane| lane.stats.take(&lane.clock)).unwrap_or_default()
}

/// Adds a time that no span took to the stats of the calling thread's lane, for the next [`take_stats`]. It is no stage:
/// `residue` stays what it is. Without a lane, and at the level `off`, it does nothing.
pub fn add_time(name: &'static str, duration: Duration) {
    if level::current() != 0 {
        with(|lane| lane.stats.add_time(name, duration));
    }
}
