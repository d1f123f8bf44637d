//! How full the queues were, and how old what they hand on is.

use super::{Section, known, named};
use crate::handoffs::Handoff;
use crate::queues::QueueRow;
use crate::report::Report;
use crate::text::{grouped, harmless, milliseconds, percent};

/// Nothing at all where no queue was read.
pub(super) fn depths(report: &Report) -> Option<Section> {
    if report.queues.is_empty() {
        return None;
    }
    let headings = vec!["queue", "mean depth", "max", "holds", "empty", "full", "readings"];
    let rows = report.queues.iter().map(depth_row).collect();
    Some(Section { title: "queues".into(), names: 1, headings, rows, notes: Vec::new() })
}

fn depth_row(queue: &QueueRow) -> Vec<String> {
    vec![
        named(&queue.queue, queue.rank),
        format!("{:.1}", queue.mean),
        queue.max.to_string(),
        known(queue.capacity.map(|capacity| capacity.to_string())),
        known(queue.empty_share.map(percent)),
        known(queue.full_share.map(percent)),
        grouped(queue.samples),
    ]
}

/// Nothing at all where no hand-off was recorded.
pub(super) fn handoffs(report: &Report) -> Option<Section> {
    let found = &report.handoffs;
    if found.pairs.is_empty() && found.never_taken == 0 && found.never_put == 0 {
        return None;
    }
    let headings =
        vec!["from", "to", "items", "age p50 ms", "p90 ms", "p99 ms", "max ms", "waits for room", "waits for input"];
    let mut notes = vec![
        "age: from the hand-over to the taking, waiting for room included; waits: shares of the lane's own time"
            .to_owned(),
    ];
    if found.never_taken > 0 {
        notes.push(format!("{} items were put and not taken (yet)", grouped(found.never_taken)));
    }
    if found.never_put > 0 {
        notes.push(format!("{} items were taken whose putting is not recorded", grouped(found.never_put)));
    }
    let rows = found.pairs.iter().map(handoff_row).collect();
    Some(Section { title: "hand-offs".into(), names: 2, headings, rows, notes })
}

fn handoff_row(pair: &Handoff) -> Vec<String> {
    vec![
        named(&pair.from, pair.rank),
        harmless(&pair.to),
        grouped(pair.age.count),
        milliseconds(pair.age.p50_ns as f64),
        milliseconds(pair.age.p90_ns as f64),
        milliseconds(pair.age.p99_ns as f64),
        milliseconds(pair.age.max_ns as f64),
        known(pair.put_share.map(percent)),
        known(pair.wait_share.map(percent)),
    ]
}
