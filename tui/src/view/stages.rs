//! The stage table: what the report prints, with curves.

use dflash_reports::stages::{LaneTable, StageRow};
use dflash_reports::stats::Stats;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::format::{self, known};
use super::lanes::chip;
use super::theme::{Tone, tone};
use super::write::{self, piece};
use super::{spark, text};
use crate::state::{Extent, Lane, State, resample};

/// The least and the most that a curve takes.
const CURVE: (usize, usize) = (10, 60);

/// One line of the table.
enum Row<'a> {
    Lane(&'a Lane),
    Total(&'a LaneTable, &'a Lane),
    Stage(&'a StageRow, &'a Lane),
    Gap,
}

/// A column: its heading, its width, and the number of a row: its statistics, those of its device, its share.
struct Column {
    title: &'static str,
    width: usize,
    value: fn(&Stats, Option<&Stats>, f64) -> String,
}

const COLUMNS: [Column; 7] = [
    Column { title: "count", width: 7, value: |host, _, _| format::whole(host.count as f64) },
    Column { title: "mean ms", width: 8, value: |host, _, _| format::milliseconds(host.mean_ns) },
    Column { title: "p50 ms", width: 8, value: |host, _, _| format::milliseconds(host.p50_ns as f64) },
    Column { title: "p95 ms", width: 8, value: |host, _, _| format::milliseconds(host.p95_ns as f64) },
    Column {
        title: "GPU p50",
        width: 8,
        value: |_, device, _| known(device, |d| format::milliseconds(d.p50_ns as f64)),
    },
    Column {
        title: "GPU p95",
        width: 8,
        value: |_, device, _| known(device, |d| format::milliseconds(d.p95_ns as f64)),
    },
    Column { title: "share", width: 6, value: |_, _, share| format::percent(share) },
];

/// Which columns stay when it gets narrow, the most telling first.
const PRIORITY: [usize; 7] = [6, 1, 2, 3, 0, 4, 5];

/// Widths of the parts of a line.
struct Widths {
    name: usize,
    columns: Vec<&'static Column>,
    curve: usize,
}

/// Draws the table from the line that is scrolled to.
pub fn draw(area: Rect, frame: &mut Buffer, state: &State) -> Extent {
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let rows = rows(state);
    let page = usize::from(area.height.saturating_sub(1));
    let lanes = rows.iter().enumerate().filter(|(_, row)| matches!(row, Row::Lane(_))).map(|(index, _)| index);
    let extent = Extent { page, last: rows.len().saturating_sub(page), lanes: lanes.collect() };
    let widths = widths(usize::from(area.width), &rows);
    draw_heading(area, frame, &widths, state);
    for (index, row) in rows.iter().skip(state.scroll.min(extent.last)).take(page).enumerate() {
        let Ok(y) = u16::try_from(index + 1) else { break };
        let place = Rect { y: area.y + y, height: 1, ..area };
        match row {
            Row::Lane(lane) => write::heading(place, frame, 0, &lane.name, &about(lane)),
            Row::Total(table, lane) => {
                let cells = cells(&table.total, table.total_device.as_ref(), 1.0, &widths);
                let name = vec![piece(&text::left("  total", widths.name), Tone::Strong)];
                draw_row(place, frame, [name, cells].concat());
                draw_curve(place, frame, &widths, &lane.total_curve, Tone::Dim);
            }
            Row::Stage(stage, lane) => {
                let cells = cells(&stage.host, stage.device.as_ref(), stage.share, &widths);
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
        if !rows.is_empty() {
            rows.push(Row::Gap);
        }
        rows.push(Row::Lane(lane));
        if let Some(table) = &lane.table {
            rows.extend(table.rows.iter().map(|row| Row::Stage(row, lane)));
            rows.push(Row::Total(table, lane));
        }
    }
    rows
}

/// Device, iterations, those set apart, and what it is doing.
fn about(lane: &Lane) -> String {
    let mut words = vec![lane.device.clone()];
    match &lane.table {
        Some(table) => {
            words.push(format!("{} iterations", format::whole(table.iterations as f64)));
            let apart = table.set_apart.iter();
            words.extend(apart.map(|apart| format!("{} {:?} set apart", apart.iterations, apart.kind).to_lowercase()));
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

fn cells(host: &Stats, device: Option<&Stats>, share: f64, widths: &Widths) -> Vec<Span<'static>> {
    let cell = |column: &&Column| {
        let value = (column.value)(host, device, share);
        let tone = if value == format::UNKNOWN { Tone::Dim } else { Tone::Plain };
        piece(&format!(" {}", text::right(&value, column.width)), tone)
    };
    widths.columns.iter().map(cell).collect()
}

fn draw_row(place: Rect, frame: &mut Buffer, pieces: Vec<Span<'static>>) {
    write::line(place, frame, 0, Line::from(pieces));
}

fn draw_heading(area: Rect, frame: &mut Buffer, widths: &Widths, state: &State) {
    let mut pieces = vec![piece(&text::left(&format!("stage, {}", state.window.title()), widths.name), Tone::Dim)];
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
    let place = Rect { x: place.right() - width, width, ..place };
    let curve = resample(curve, widths.curve);
    let top = curve.iter().flatten().copied().fold(0.0, f64::max);
    spark::draw(place, frame, &curve, top, tone(as_tone));
}

fn widths(width: usize, rows: &[Row]) -> Widths {
    let of = |row: &Row| match row {
        Row::Stage(stage, _) => text::width(&text::clean(&stage.stage)) + 2 + 2 * usize::from(stage.depth),
        _ => 0,
    };
    let name = rows.iter().map(of).max().unwrap_or(0).clamp(20, 32).min(width / 2);
    let mut room = width - name;
    let mut chosen = Vec::new();
    for index in PRIORITY {
        if COLUMNS[index].width < room {
            room -= COLUMNS[index].width + 1;
            chosen.push(index);
        }
    }
    chosen.sort_unstable();
    let curve = if room >= CURVE.0 + 2 { (room - 2).min(CURVE.1) } else { 0 };
    Widths { name, columns: chosen.into_iter().map(|index| &COLUMNS[index]).collect(), curve }
}
