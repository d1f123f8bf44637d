//! The allocator's section.

use super::{Section, absent, gibibytes, known, named};
use crate::allocator::{Allocator, STEADY_AFTER, StageMoves, late_device_allocations};
use crate::report::Report;
use crate::text::{grouped, harmless};

pub(super) fn section(report: &Report) -> Option<Section> {
    let devices = &report.allocators;
    if devices.is_empty() {
        return on_gpu(report).then(|| absent("allocator", "no counter allocator.*"));
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for device in devices {
        rows.extend(device.stages.iter().map(|stage| row(device, stage)));
    }
    let late = known(late_device_allocations(devices).map(grouped));
    let mut notes = vec![format!("device allocations after iteration {STEADY_AFTER}: {late}")];
    notes.extend(devices.iter().map(levels));
    let headings = ["device", "stage", "device allocations", "device frees", "retries", "out of memory"];
    Some(Section { title: "allocator".into(), names: 2, headings: headings.to_vec(), rows, notes })
}

/// A run on the CPU has no caching allocator that could be missing.
pub(super) fn on_gpu(report: &Report) -> bool {
    report.stages.lanes.iter().any(|lane| lane.device.starts_with("cuda"))
}

fn row(device: &Allocator, moves: &StageMoves) -> Vec<String> {
    let stage = moves.stage.as_deref().map_or_else(|| "(outside of stages)".into(), harmless);
    let counts = [moves.device_allocations, moves.device_frees, moves.retries, moves.out_of_memory];
    [named(&device.device, device.rank), stage].into_iter().chain(counts.map(grouped)).collect()
}

fn levels(device: &Allocator) -> String {
    let bytes = |range: Option<crate::counters::Range>| {
        known(range.map(|r| format!("mean {}, max {}", gibibytes(r.mean), gibibytes(r.max))))
    };
    let late = known(device.late_device_allocations.map(grouped));
    let blocks = known(device.allocations.map(|r| format!("{:.0}", r.mean)));
    format!(
        "{}: reserved {}; active {}; {blocks} allocations by iteration; {late} late device allocations",
        named(&device.device, device.rank),
        bytes(device.reserved),
        bytes(device.active)
    )
}
