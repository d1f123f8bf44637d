//! The report as a table for people.

use super::{Losses, Report};
use crate::queues::CounterRow;
use crate::stages::{LaneTable, RESIDUE, StageRow, TOTAL};
use crate::stats::Stats;
use crate::text::{Grid, Look, Style, UNKNOWN, bar, duration, grouped, harmless, milliseconds, percent};
use std::fmt::Write as _;

/// Cells of the bar that shows a share.
const BAR: usize = 12;

/// Writes the report as text.
#[must_use]
pub fn table(report: &Report, look: Look) -> String {
    let mut text = String::new();
    for line in head(report) {
        let _ = writeln!(text, "{}", look.paint(Style::Bold, &line));
    }
    for warning in warnings(&report.losses) {
        let _ = writeln!(text, "{}", look.paint(Style::Yellow, &format!("warning: {warning}")));
    }
    for lane in &report.stages.lanes {
        let _ = write!(text, "\n{}\n{}", look.paint(Style::Bold, &lane_title(lane)), lane_grid(lane, look));
    }
    if report.stages.lanes.is_empty() {
        text.push_str("\nno finished iteration was recorded yet\n");
    }
    text.push('\n');
    for line in foot(report) {
        let _ = writeln!(text, "{line}");
    }
    text
}

/// The lines above the tables: the run, its throughput, who limits.
pub(super) fn head(report: &Report) -> Vec<String> {
    let mut facts = Vec::new();
    if let Some(run) = &report.run {
        facts.push(format!("run {}", harmless(&run.name)));
        facts.push(run.state.clone());
    }
    let throughput = &report.throughput;
    facts.push(throughput.wall_ns.map_or_else(|| UNKNOWN.into(), duration));
    let rate = throughput.tokens_per_s.map_or_else(|| UNKNOWN.into(), |rate| grouped(rate.round() as u64));
    facts.push(format!("{rate} tokens/s"));
    if let Some(run) = &report.run {
        facts.push(run.tau.map_or_else(|| format!("tau {UNKNOWN}"), |tau| format!("tau {tau:.2}")));
    }
    vec![facts.join(" · "), harmless(&report.verdict_text)]
}

/// What a reader must know before trusting the numbers.
pub(super) fn warnings(losses: &Losses) -> Vec<String> {
    let mut lines = Vec::new();
    if !losses.ended {
        lines.push("the timeline has no end yet: the run goes on, or it died and its last moments are lost".into());
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

/// A lane's heading.
pub(super) fn lane_title(lane: &LaneTable) -> String {
    let rank = if lane.rank > 0 { format!(", rank {}", lane.rank) } else { String::new() };
    let mut title = format!("{} on {}{rank}: {}", harmless(&lane.lane), harmless(&lane.device), iterations(lane));
    let cpu = lane.cpu_share.map_or_else(|| UNKNOWN.into(), percent);
    let _ = write!(title, ", CPU {cpu}");
    title
}

fn iterations(lane: &LaneTable) -> String {
    let mut text = format!("{} iterations", grouped(lane.iterations));
    if !lane.set_apart.is_empty() {
        let kinds = lane.set_apart.iter().map(|set| format!("{} {}", grouped(set.iterations), set.kind.as_str()));
        let _ = write!(text, " (set apart: {})", kinds.collect::<Vec<_>>().join(", "));
    }
    text
}

fn lane_grid(lane: &LaneTable, look: Look) -> String {
    let mut grid = Grid::default();
    let heading = HEADINGS.into_iter().chain(["share", ""]);
    grid.row(heading, Some(Style::Dim));
    for row in &lane.rows {
        let name = format!("{}{}", "  ".repeat(usize::from(row.depth)), harmless(&row.stage));
        let shown = if row.depth == 0 { bar(row.share, BAR) } else { String::new() };
        grid.row(cells(name, row).into_iter().chain([percent(row.share), shown]), style(row));
    }
    let total = total_cells(lane).into_iter().chain([percent(1.0), String::new()]);
    grid.row(total, Some(Style::Bold));
    grid.text("  ", true, look)
}

/// The numeric columns' headings; times in milliseconds unless it says otherwise.
pub(super) const HEADINGS: [&str; 9] =
    ["stage", "count", "total s", "mean ms", "p50 ms", "p95 ms", "max ms", "device mean", "device p95"];

/// One row's cells up to the device columns.
pub(super) fn cells(name: String, row: &StageRow) -> Vec<String> {
    statistics(name, &row.host, row.device.as_ref())
}

/// The cells of the row `total`.
pub(super) fn total_cells(lane: &LaneTable) -> Vec<String> {
    statistics(TOTAL.to_owned(), &lane.total, lane.total_device.as_ref())
}

fn statistics(name: String, host: &Stats, device: Option<&Stats>) -> Vec<String> {
    let of_device = |value: fn(&Stats) -> f64| device.map_or_else(|| UNKNOWN.into(), |d| milliseconds(value(d)));
    vec![
        name,
        grouped(host.count),
        format!("{:.2}", host.total_ns as f64 / 1e9),
        milliseconds(host.mean_ns),
        milliseconds(host.p50_ns as f64),
        milliseconds(host.p95_ns as f64),
        milliseconds(host.max_ns as f64),
        of_device(|d| d.mean_ns),
        of_device(|d| d.p95_ns as f64),
    ]
}

fn style(row: &StageRow) -> Option<Style> {
    match row.stage.as_str() {
        _ if row.depth > 0 => Some(Style::Dim),
        RESIDUE => Some(Style::Dim),
        name if name.ends_with(".wait") || name.ends_with(".put") => Some(Style::Yellow),
        _ => None,
    }
}

/// The lines below the tables: queues, records, the profiler's own cost.
pub(super) fn foot(report: &Report) -> Vec<String> {
    let queues = report.queues.iter().map(|q| {
        format!("queue {}: mean {:.1}, max {} of {} readings", harmless(&q.queue), q.mean, q.max, grouped(q.samples))
    });
    let totals = &report.losses.totals;
    let records = format!(
        "records: {} written, {} dropped, {} open, {} negative, {} unresolved, {} misplaced",
        grouped(totals.written),
        grouped(totals.dropped),
        grouped(totals.open),
        grouped(totals.negative),
        grouped(totals.unresolved),
        grouped(totals.misplaced)
    );
    queues.chain([records]).chain(cost(report)).collect()
}

fn cost(report: &Report) -> Vec<String> {
    let counters = report.profiler.counters.iter().map(counter);
    let bare = report.profiler.bare.iter().map(|lane| {
        let (with, without) = (milliseconds(lane.train_p50_ns as f64), milliseconds(lane.bare_p50_ns as f64));
        let name = harmless(&lane.lane);
        format!("profiler: {name} takes {with} ms with and {without} ms without spans ({} bare)", lane.iterations)
    });
    let mut lines: Vec<String> = counters.chain(bare).collect();
    if lines.is_empty() {
        lines.push(format!("profiler: own cost {UNKNOWN} (no counter profiler.*, no bare iterations)"));
    }
    lines
}

/// CPU time as a share of one core, everything else by second.
fn counter(row: &CounterRow) -> String {
    let name = harmless(&row.counter);
    match (row.unit.as_str(), row.per_s) {
        ("ns", per_s) => {
            let share = per_s.map_or_else(|| UNKNOWN.into(), |ns| format!("{:.2} %", ns / 1e7));
            format!("profiler: {name} {:.1} ms, {share} of one core", row.growth / 1e6)
        }
        (unit, per_s) => {
            let rate = per_s.map_or_else(|| UNKNOWN.into(), |rate| grouped(rate.round() as u64));
            format!(
                "profiler: {name} {} {unit}, {rate} by second",
                grouped(row.growth.round() as u64),
                unit = harmless(unit)
            )
        }
    }
}
