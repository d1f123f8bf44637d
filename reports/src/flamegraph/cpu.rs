//! CPU flame graphs: sampled stacks under the lane and the spans that were open when they hit.

use super::{Stacks, frame, lane_root};
use crate::error::{Error, Result};
use crate::walk::Window;
use dflash_timeline::Timeline;
use dflash_timeline::record::StackSample;
use std::collections::BTreeMap;

/// Samples by folded stack, `lane;span;span;function;function`. A thread that no lane claims stands under its own name;
/// it belongs to no lane, so a window that asks for lanes leaves it out.
///
/// # Errors
/// [`Error::NothingSampled`] if there is no sample in the window, [`Error::NoSuchLane`] if it asks for a lane that there
/// is not.
pub(super) fn folded(timeline: &Timeline, window: &Window) -> Result<Stacks> {
    window.check_lanes(timeline)?;
    let mut stacks: Stacks = BTreeMap::new();
    for sample in timeline.stacks.iter().filter(|sample| is_inside(timeline, window, sample)) {
        *stacks.entry(stack(timeline, sample)).or_default() += 1;
    }
    if stacks.is_empty() {
        let which = if window.lanes.is_empty() { String::new() } else { format!(" on {}", window.lanes.join(", ")) };
        return Err(Error::NothingSampled { which });
    }
    Ok(stacks)
}

fn is_inside(timeline: &Timeline, window: &Window, sample: &StackSample) -> bool {
    let named = |lane| timeline.lane(lane).is_some_and(|lane| window.lanes.contains(&lane.name));
    window.from_ns.is_none_or(|from| sample.time_ns >= from)
        && window.to_ns.is_none_or(|to| sample.time_ns < to)
        && (window.lanes.is_empty() || sample.lane.is_some_and(named))
}

fn stack(timeline: &Timeline, sample: &StackSample) -> String {
    let root = match sample.lane {
        Some(lane) => lane_root(timeline, lane),
        None => frame(timeline.name(sample.thread), None),
    };
    let names = sample.spans.iter().chain(&sample.frames);
    names.fold(root, |stack, name| stack + ";" + &frame(timeline.name(*name), None))
}
