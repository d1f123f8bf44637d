//! The report as a table for people.

use super::Report;
use super::sections::sections;
use super::warnings::warnings;
use crate::stages::{Hint, LaneTable, RESIDUE, StageRow, TOTAL, is_wait};
use crate::stats::Stats;
use crate::text::{Grid, Look, Style, UNKNOWN, bar, duration, grouped, harmless, milliseconds, percent};
use crate::window::Scope;
use std::fmt::Write as _;

/// Cells of the bar that shows a share.
const BAR: usize = 8;
/// Rows of a lane that forms for people show; CSV and JSON have all.
pub(super) const MOST_ROWS: usize = 200;

/// Writes the report as text.
#[must_use]
pub fn table(report: &Report, look: Look) -> String {
    let mut text = String::new();
    for line in head(report) {
        let _ = writeln!(text, "{}", look.paint(Style::Bold, &line));
    }
    for warning in warnings(report) {
        let _ = writeln!(text, "{}", look.paint(Style::Yellow, &format!("warning: {warning}")));
    }
    for lane in &report.stages.lanes {
        let _ = write!(text, "\n{}\n{}", look.paint(Style::Bold, &lane_title(lane)), lane_grid(lane, look));
    }
    if report.stages.lanes.is_empty() {
        let _ = writeln!(text, "\n{}", nothing(report));
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
    let mut lines = vec![facts.join(" · ")];
    lines.extend(report.other_runs.iter().map(|run| format!("and run {} · {}", harmless(&run.name), run.state)));
    lines.extend(scope(report));
    lines.push(harmless(&report.verdict_text));
    lines
}

/// The part that is looked at, if it is not all.
fn scope(report: &Report) -> Option<String> {
    let Scope { from_ns, to_ns, lanes, ranks } = &report.scope;
    let mut parts = Vec::new();
    if from_ns.is_some() || to_ns.is_some() {
        let end = |ns: &Option<i64>, else_: &str| {
            ns.map_or_else(|| else_.to_owned(), |ns| duration(u64::try_from(ns).unwrap_or(0)))
        };
        parts.push(format!("iterations that ended from {} to {}", end(from_ns, "the start"), end(to_ns, "the end")));
    }
    if !lanes.is_empty() {
        parts.push(format!("lanes {}", lanes.iter().map(|lane| harmless(lane)).collect::<Vec<_>>().join(", ")));
    }
    if !ranks.is_empty() {
        parts.push(format!("ranks {}", ranks.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")));
    }
    (!parts.is_empty()).then(|| format!("only {}", parts.join("; ")))
}

/// Why there is no table.
pub(super) fn nothing(report: &Report) -> &'static str {
    if report.scope.from_ns.is_some() || report.scope.to_ns.is_some() {
        "no finished iteration was recorded in this stretch of time"
    } else {
        "no finished iteration was recorded yet"
    }
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
    grid.texts([1, HEADINGS.len() - 1]);
    grid.row(HEADINGS.into_iter().chain([""]), Some(Style::Dim));
    for row in lane.rows.iter().take(MOST_ROWS) {
        let name = format!("{}{}", "  ".repeat(usize::from(row.depth)), harmless(&row.stage));
        let shown = if row.depth == 0 { bar(row.share, BAR) } else { String::new() };
        let [host, device] = cells(name, lane, row);
        grid.row(host.into_iter().flatten().chain([shown]), style(row));
        device.into_iter().for_each(|cells| grid.row(cells, Some(Style::Dim)));
    }
    let [host, device] = total_cells(lane);
    host.into_iter().for_each(|cells| grid.row(cells, Some(Style::Bold)));
    device.into_iter().for_each(|cells| grid.row(cells, Some(Style::Dim)));
    let more = more_rows(lane).map_or_else(String::new, |line| format!("  {line}\n"));
    grid.text("  ", true, look) + &more
}

/// What a lane's table leaves out.
pub(super) fn more_rows(lane: &LaneTable) -> Option<String> {
    let more = lane.rows.len().saturating_sub(MOST_ROWS);
    (more > 0).then(|| format!("and {} rows more (--format csv and json have all)", grouped(more as u64)))
}

/// The columns' headings; times in milliseconds unless it says otherwise. A stage has a row per clock.
pub(super) const HEADINGS: [&str; 12] = [
    "stage", "clock", "count", "total s", "mean ms", "p50 ms", "p90 ms", "p95 ms", "p99 ms", "max ms", "share", "hint",
];

/// Cells of a row's host time, and of its device time where there is one.
pub(super) fn cells(name: String, lane: &LaneTable, row: &StageRow) -> [Option<Vec<String>>; 2] {
    let hint = row.hint.map_or("", Hint::as_str);
    [
        Some(statistics(name, "host", &row.host, percent(row.share), hint)),
        row.device.as_ref().map(|device| device_cells(device, row.host.count, lane)),
    ]
}

/// The cells of the row `total`.
pub(super) fn total_cells(lane: &LaneTable) -> [Option<Vec<String>>; 2] {
    [
        Some(statistics(TOTAL.to_owned(), "host", &lane.total, percent(1.0), "")),
        lane.total_device.as_ref().map(|device| device_cells(device, lane.total.count, lane)),
    ]
}

/// The share is of the lane's wall time, and known only if every iteration has a device time.
fn device_cells(device: &Stats, of: u64, lane: &LaneTable) -> Vec<String> {
    let whole = device.count == of && lane.total.total_ns > 0;
    let share = if whole { percent(device.total_ns as f64 / lane.total.total_ns as f64) } else { UNKNOWN.into() };
    statistics(String::new(), "device", device, share, "")
}

fn statistics(name: String, clock: &str, stats: &Stats, share: String, hint: &str) -> Vec<String> {
    vec![
        name,
        clock.to_owned(),
        grouped(stats.count),
        format!("{:.2}", stats.total_ns as f64 / 1e9),
        milliseconds(stats.mean_ns),
        milliseconds(stats.p50_ns as f64),
        milliseconds(stats.p90_ns as f64),
        milliseconds(stats.p95_ns as f64),
        milliseconds(stats.p99_ns as f64),
        milliseconds(stats.max_ns as f64),
        share,
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

/// The lines below the tables: hints, records.
pub(super) fn foot(report: &Report) -> Vec<String> {
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
    legend.chain([records]).collect()
}

/// What the hints mean.
const LEGEND: [&str; 4] = [
    "hints: async: the host runs ahead; sync: it waits for the device and says so; launch-bound: the device waits for it",
    "hint hidden sync: both take as long, the device had been behind and is no more: something waits for it unsaid",
    "hint held back: both take as long, the device is behind all along: its launch queue is full, as it may be",
    "hint in step: both take as long, level at both ends: an unsaid wait, or a device that runs dry (a kernel capture tells)",
];
