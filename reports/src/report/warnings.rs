//! What is missing of a recording, in sentences.

use super::Report;
use crate::text::{grouped, harmless};

/// What a reader must know before trusting the numbers.
pub(super) fn warnings(report: &Report) -> Vec<String> {
    let losses = &report.losses;
    let mut lines: Vec<String> = stopped(report).collect();
    if losses.expired > 0 {
        let records = grouped(losses.expired);
        lines.push(format!("`keep` has deleted {records} older records: what follows is about the rest"));
    }
    if !losses.ended {
        lines.push(no_end(report).into());
    }
    if losses.bad_blocks > 0 || losses.skipped_bytes > 0 {
        let (blocks, bytes) = (grouped(losses.bad_blocks), grouped(losses.skipped_bytes));
        lines.push(format!("the timeline is torn: {blocks} damaged blocks, {bytes} bytes skipped"));
    }
    lines.extend(losses.problems.iter().take(5).map(|problem| harmless(problem)));
    if losses.problems.len() > 5 {
        lines.push(format!("and {} problems more (see --format json)", losses.problems.len() - 5));
    }
    if losses.totals.dropped > 0 {
        lines.push(format!(
            "{} records were lost because the profiler could not keep up",
            grouped(losses.totals.dropped)
        ));
    }
    if losses.strays > 0 && losses.ended {
        lines.push(format!("{} spans belong to iterations whose record is lost", grouped(losses.strays)));
    }
    if losses.overfull > 0 {
        lines.push(format!("{} iterations are shorter than their stages together", grouped(losses.overfull)));
    }
    lines
}

/// Recordings that stopped before their run did.
fn stopped(report: &Report) -> impl Iterator<Item = String> {
    let runs = report.run.iter().chain(&report.other_runs);
    let several = !report.other_runs.is_empty();
    runs.filter_map(move |run| {
        let of = if several { format!(" of {}", harmless(&run.name)) } else { String::new() };
        Some(format!("the recording{of} is incomplete: {}", harmless(run.trouble.as_ref()?)))
    })
}

/// Why there is no END block, as far as the run's state tells.
fn no_end(report: &Report) -> &'static str {
    match report.run.as_ref().filter(|_| report.other_runs.is_empty()).map(|run| run.state.as_str()) {
        Some("running") => "the timeline has no end yet: the run goes on",
        Some("died") => "the timeline has no end: the run died, and its last moments are lost",
        Some(_) => "the timeline has no end, though the run has: its recording stopped before",
        None => "the timeline has no end yet: the run goes on, or it died and its last moments are lost",
    }
}
