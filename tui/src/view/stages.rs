//! The stage table: what the report prints, with curves.

mod columns;

use dflash_reports::stages::{LaneTable, StageRow};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::format;
use super::lanes::chip;
use super::theme::{Tone, tone};
use super::write::{self, piece};
use super::{spark, text};
use columns::{Figures, Widths, cells};

use crate::state::{Extent, Lane, Liveness, State, View, bridged, resample, worse};

/// So many columns of a curve without an iteration are no gap.
const BRIDGED: usize = 6;

/// One line of the table.
enum Row<'a> {
    Lane(&'a Lane),
    Total(&'a LaneTable, &'a Lane),
    Stage(&'a StageRow, &'a Lane),
    Gap,
}

/// Draws the table from the line that is scrolled to.
pub fn draw(area: Rect, frame: &mut Buffer, state: &State) -> Extent {
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let rows = rows(state);
    let page = usize::from(area.height.saturating_sub(1));
    let lanes = rows.iter().enumerate().filter(|(_, row)| matches!(row, Row::Lane(_))).map(|(index, _)| index);
    let extent = Extent { page, last: rows.len().saturating_sub(page), lanes: lanes.collect(), ..Extent::default() };
    let width = usize::from(area.width);
    let widths = columns::widths(width, name_width(width, &rows), state.compared().is_some());
    draw_heading(area, frame, &widths, state);
    if rows.is_empty() {
        let no_run = state.model.run.liveness == Liveness::NoRun;
        let words = match () {
            () if no_run => "no run, so no lanes and no stages",
            () if state.filter.is_empty() => "nothing recorded yet",
            () => "no stage passes the filter",
        };
        write::line(area, frame, 1, Line::from(piece(words, Tone::Dim)));
    }
    for (index, row) in rows.iter().skip(state.scroll.min(extent.last)).take(page).enumerate() {
        let Ok(y) = u16::try_from(index + 1) else { break };
        let place = Rect { y: area.y + y, height: 1, ..area };
        match row {
            Row::Lane(lane) => write::heading(place, frame, 0, &lane.name, &about(lane)),
            Row::Total(table, lane) => {
                let change = state.compared().and_then(|baseline| baseline.total_change(table));
                let of = Figures { host: &table.total, device: table.total_device.as_ref(), share: 1.0, change };
                let cells = cells(&of, &widths);
                let name = vec![piece(&text::left("  total", widths.name), Tone::Strong)];
                draw_row(place, frame, [name, cells].concat());
                draw_curve(place, frame, &widths, &lane.total_curve, Tone::Dim);
            }
            Row::Stage(stage, lane) => {
                let (host, device, share) = (&stage.host, stage.device.as_ref(), stage.share);
                let table = lane.table.as_ref();
                let change = state.compared().zip(table).and_then(|(baseline, table)| baseline.change(table, stage));
                let cells = cells(&Figures { host, device, share, change }, &widths);
                draw_row(place, frame, [name(stage, widths.name), cells].concat());
                if stage.depth == 0
                    && let Some((_, curve)) = lane.curves.iter().find(|(name, _)| *name == stage.stage)
                {
                    draw_curve(place, frame, &widths, curve, Tone::Area);
                }
            }
            Row::Gap => {}
        }
    }
    extent
}

/// Lines that the whole table takes.
pub fn wanted_lines(state: &State) -> usize {
    rows(state).len() + 1
}

fn rows(state: &State) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for lane in &state.model.lanes {
        let whole = state.shows(&[&lane.name, &lane.device]);
        let stages = stages(state, lane, whole);
        if !whole && stages.is_empty() {
            continue;
        }
        if !rows.is_empty() {
            rows.push(Row::Gap);
        }
        rows.push(Row::Lane(lane));
        rows.extend(stages.into_iter().map(|row| Row::Stage(row, lane)));
        if let Some(table) = &lane.table {
            rows.push(Row::Total(table, lane));
        }
    }
    rows
}

/// A lane's stages that pass the filter, in the order asked for; what is nested is shown only in the usual one, where it
/// stands below its stage.
fn stages<'a>(state: &State, lane: &'a Lane, whole: bool) -> Vec<&'a StageRow> {
    let Some(table) = &lane.table else { return Vec::new() };
    let usual = state.sorted_by(View::Stages) == Some("pipeline");
    let passes = |row: &&StageRow| (whole || state.shows(&[&row.stage])) && (usual || row.depth == 0);
    let mut stages: Vec<&StageRow> = table.rows.iter().filter(passes).collect();
    if usual {
        return stages;
    }
    let change = |row: &StageRow| state.compared().and_then(|baseline| baseline.change(table, row)).map(f64::abs);
    state.sort(View::Stages, &mut stages, |column, a, b| match column {
        "share" => worse(Some(a.share), Some(b.share)),
        "p50" => b.host.p50_ns.cmp(&a.host.p50_ns),
        "p95" => b.host.p95_ns.cmp(&a.host.p95_ns),
        "change" => worse(change(a), change(b)),
        _ => a.stage.cmp(&b.stage),
    });
    stages
}

/// Device, iterations, those set apart, and what it is doing.
fn about(lane: &Lane) -> String {
    let mut words = vec![lane.device.clone()];
    match &lane.table {
        Some(table) => {
            words.push(format!("{} iterations", format::whole(table.iterations as f64)));
            let apart = table.set_apart.iter();
            let apart: Vec<String> =
                apart.map(|apart| format!("{} {:?}", apart.iterations, apart.kind).to_lowercase()).collect();
            if !apart.is_empty() {
                words.push(format!("set apart: {}", apart.join(", ")));
            }
        }
        None => words.push("no iteration in this window".to_owned()),
    }
    if let Some((span, since)) = lane.inside.as_ref().filter(|(_, since)| since.as_secs() >= 1) {
        words.push(format!("in {span} for {}", format::age(*since)));
    }
    words.join(" · ")
}

fn name(row: &StageRow, width: usize) -> Vec<Span<'static>> {
    let indent = " ".repeat(2 * usize::from(row.depth));
    let mark = if row.depth == 0 { chip(&row.stage) } else { Span::raw("└") };
    let used = indent.len() + 2;
    vec![
        Span::raw(indent),
        mark,
        Span::raw(" "),
        piece(&text::left(&row.stage, width.saturating_sub(used)), Tone::Plain),
    ]
}

fn draw_row(place: Rect, frame: &mut Buffer, pieces: Vec<Span<'static>>) {
    write::line(place, frame, 0, Line::from(pieces));
}

fn draw_heading(area: Rect, frame: &mut Buffer, widths: &Widths, state: &State) {
    let order = match state.sorted_by(View::Stages) {
        Some("pipeline") | None => String::new(),
        Some(by) => format!(", by {by}"),
    };
    let title = format!("stage, {}{order}", state.window.title());
    let mut pieces = vec![piece(&text::left(&title, widths.name), Tone::Dim)];
    pieces.extend(widths.columns.iter().map(|c| piece(&format!(" {}", text::right(c.title, c.width)), Tone::Dim)));
    if widths.curve > 0 {
        pieces.push(piece("  over time", Tone::Dim));
    }
    draw_row(area, frame, pieces);
}

fn draw_curve(place: Rect, frame: &mut Buffer, widths: &Widths, curve: &[Option<f64>], as_tone: Tone) {
    let Ok(width) = u16::try_from(widths.curve) else { return };
    if width == 0 || width > place.width {
        return;
    }
    // Below its heading, right behind the numbers.
    let columns: usize = widths.columns.iter().map(|column| column.width + 1).sum();
    let left = u16::try_from(widths.name + columns + 2).unwrap_or(u16::MAX).min(place.width - width);
    let place = Rect { x: place.x + left, width, ..place };
    // Iterations that take longer than a column is wide leave none empty.
    let curve = bridged(resample(curve, widths.curve), BRIDGED);
    let top = curve.iter().flatten().copied().fold(0.0, f64::max);
    spark::draw(place, frame, &curve, top, tone(as_tone));
}

/// Columns that the names take of `width`.
fn name_width(width: usize, rows: &[Row]) -> usize {
    let of = |row: &Row| match row {
        Row::Stage(stage, _) => text::width(&text::clean(&stage.stage)) + 2 + 2 * usize::from(stage.depth),
        _ => 0,
    };
    rows.iter().map(of).max().unwrap_or(0).clamp(20, 32).min(width / 2)
}
