//! The report as a table for people.

use super::sections::sections;
use super::{Losses, Report};
use crate::stages::{Hint, LaneTable, RESIDUE, StageRow, TOTAL, is_wait};
use crate::stats::Stats;
use crate::text::{Grid, Look, Style, UNKNOWN, bar, duration, grouped, harmless, milliseconds, percent};
use std::fmt::Write as _;

/// Cells of the bar that shows a share.
const BAR: usize = 8;

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
    for section in sections(report) {
        text.push_str(&section.text(look));
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
    grid.texts([HEADINGS.len() - 1]);
    grid.row(HEADINGS.into_iter().chain([""]), Some(Style::Dim));
    for row in &lane.rows {
        let name = format!("{}{}", "  ".repeat(usize::from(row.depth)), harmless(&row.stage));
        let shown = if row.depth == 0 { bar(row.share, BAR) } else { String::new() };
        grid.row(cells(name, row).into_iter().chain([shown]), style(row));
    }
    grid.row(total_cells(lane), Some(Style::Bold));
    grid.text("  ", true, look)
}

/// The columns' headings; times in milliseconds unless it says otherwise. `dev n` iterations have a device time.
pub(super) const HEADINGS: [&str; 12] = [
    "stage", "count", "total s", "mean ms", "p50 ms", "p95 ms", "max ms", "share", "dev n", "dev mean", "dev p50",
    "hint",
];

/// One row's cells.
pub(super) fn cells(name: String, row: &StageRow) -> Vec<String> {
    let hint = row.hint.map_or("", Hint::as_str);
    statistics(name, &row.host, row.share, row.device.as_ref(), hint)
}

/// The cells of the row `total`.
pub(super) fn total_cells(lane: &LaneTable) -> Vec<String> {
    statistics(TOTAL.to_owned(), &lane.total, 1.0, lane.total_device.as_ref(), "")
}

fn statistics(name: String, host: &Stats, share: f64, device: Option<&Stats>, hint: &str) -> Vec<String> {
    let of_device = |text: fn(&Stats) -> String| device.map_or_else(|| UNKNOWN.into(), text);
    vec![
        name,
        grouped(host.count),
        format!("{:.2}", host.total_ns as f64 / 1e9),
        milliseconds(host.mean_ns),
        milliseconds(host.p50_ns as f64),
        milliseconds(host.p95_ns as f64),
        milliseconds(host.max_ns as f64),
        percent(share),
        of_device(|d| grouped(d.count)),
        of_device(|d| milliseconds(d.mean_ns)),
        of_device(|d| milliseconds(d.p50_ns as f64)),
        hint.to_owned(),
    ]
}

fn style(row: &StageRow) -> Option<Style> {
    match row.stage.as_str() {
        _ if row.depth > 0 => Some(Style::Dim),
        RESIDUE => Some(Style::Dim),
        name if is_wait(name) => Some(Style::Yellow),
        _ => None,
    }
}

/// The lines below the tables: hints, queues, records.
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
    let hinted = report.stages.lanes.iter().any(|lane| lane.rows.iter().any(|row| row.hint.is_some()));
    let legend = LEGEND.into_iter().filter(|_| hinted).map(str::to_owned);
    legend.chain(queues).chain([records]).collect()
}

/// What the hints mean.
const LEGEND: [&str; 2] = [
    "hints: async: the host runs ahead; sync: it waits for the device and says so; launch-bound: the device waits for it",
    "hint hidden sync: both take as long: an unsaid wait, or a device that runs dry (a kernel capture tells)",
];
