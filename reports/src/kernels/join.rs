//! Kernels joined to the timeline: device windows of stages, and how busy the device was in them.

use super::meta::Meta;
use super::{Busy, Device, LaneBusy, StageBusy};
use crate::intervals::Union;
use crate::walk::{self, Placed, Window};
use dflash_timeline::Timeline;
use dflash_timeline::record::{Iteration, Lane, LaneId, NameId};
use std::collections::BTreeMap;

/// A stage may begin or end this much off its kernels and still be whole: what its events and the clocks take.
const SLACK_NS: i64 = 1_000_000;

/// A lane on the way to its row.
#[derive(Default)]
struct Gathered {
    iterations: u64,
    /// In order of first use.
    stages: Vec<(NameId, Vec<(i64, i64)>)>,
    cut: u64,
}

/// Every lane whose device was captured and which has a device span in the capture.
pub(super) fn lanes(
    timeline: &Timeline,
    window: &Window,
    meta: &Meta,
    devices: &BTreeMap<u32, Device>,
) -> Vec<LaneBusy> {
    let window = Window { lanes: window.lanes.clone(), ..Window::default() };
    let mut found: BTreeMap<LaneId, Gathered> = BTreeMap::new();
    walk::for_each_pass(timeline, &window, |iteration, spans| {
        let Some(lane) = timeline.lane(iteration.lane) else { return };
        if let Some(device) = device_of(lane, devices).filter(|_| is_counted(meta, lane, iteration)) {
            found.entry(iteration.lane).or_default().add(spans, meta, device);
        }
    });
    let rows = found.into_iter().filter(|(_, gathered)| gathered.iterations > 0);
    rows.filter_map(|(id, gathered)| {
        let lane = timeline.lane(id)?;
        Some(gathered.row(timeline, lane, device_of(lane, devices)?))
    })
    .collect()
}

fn device_of<'a>(lane: &Lane, devices: &'a BTreeMap<u32, Device>) -> Option<&'a Device> {
    devices.get(&lane.device.strip_prefix("cuda:")?.parse().ok()?)
}

/// Of the lane that counted, its iterations; of the others, those that the capture holds in time. Kernels are one
/// process's.
fn is_counted(meta: &Meta, lane: &Lane, iteration: &Iteration) -> bool {
    let counted = meta.lane.as_ref() == Some(&lane.name);
    let from = meta.first_iteration.is_none_or(|first| !counted || iteration.number >= first);
    let to = meta.last_iteration.is_none_or(|last| !counted || iteration.number <= last);
    lane.rank == meta.rank && from && to
}

impl Gathered {
    fn add(&mut self, spans: &[Placed<'_>], meta: &Meta, device: &Device) {
        let mut any = false;
        for Placed { span, .. } in spans {
            let Some(time) = span.device.filter(|_| span.depth == 0) else { continue };
            let launched = (span.begin_ns, span.begin_ns.saturating_add_unsigned(span.duration_ns));
            let window = (time.begin_ns, time.begin_ns.saturating_add_unsigned(time.duration_ns));
            match holds(meta, device, launched, window) {
                Some(true) => {}
                Some(false) => {
                    self.cut += 1;
                    continue;
                }
                None => continue,
            }
            any = true;
            match self.stages.iter_mut().find(|(name, _)| *name == span.name) {
                Some((_, windows)) => windows.push(window),
                None => self.stages.push((span.name, vec![window])),
            }
        }
        self.iterations += u64::from(any);
    }

    fn row(self, timeline: &Timeline, lane: &Lane, device: &Device) -> LaneBusy {
        let stages = self.stages.iter().map(|(name, windows)| {
            let window_ns = windows.iter().map(|(begin, end)| end.abs_diff(*begin)).sum();
            let busy_ns = windows.iter().map(|window| device.busy.covered(*window)).sum();
            let busy = Busy::of(window_ns, busy_ns);
            StageBusy { stage: timeline.name(*name).to_owned(), windows: windows.len() as u64, busy }
        });
        let within = Union::of(self.stages.iter().flat_map(|(_, windows)| windows.iter().copied()).collect());
        LaneBusy {
            lane: lane.name.clone(),
            device: lane.device.clone(),
            rank: lane.rank,
            iterations: self.iterations,
            stages: stages.collect(),
            between: between(&within, &device.busy),
            cut: self.cut,
        }
    }
}

/// Whether a capture holds all kernels of a span, or a part (`false`), or none. All were launched while the tracer ran, and
/// had ended before it stopped. Where nobody wrote down when it ran, the kernels themselves say.
fn holds(meta: &Meta, device: &Device, launched: (i64, i64), window: (i64, i64)) -> Option<bool> {
    let (first, last) = device.busy.extent()?;
    let (first, last) = (first.saturating_sub(SLACK_NS), last.saturating_add(SLACK_NS));
    let (stretch, (from, to)) = meta.window().map_or((window, (first, last)), |traced| (launched, traced));
    if stretch.1 <= from || stretch.0 >= to {
        return None;
    }
    Some(stretch.0 >= from && stretch.1 <= to && window.1 <= last)
}

fn between(within: &Union, busy: &Union) -> Busy {
    let Some(extent) = within.extent() else { return Busy::default() };
    let window_ns = extent.1.abs_diff(extent.0) - within.total();
    Busy::of(window_ns, busy.covered(extent) - within.covered_by_both(busy, extent))
}
