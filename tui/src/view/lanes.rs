//! The lanes of the overview: one line each, and one below it with its stages where there is room.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::columns::{self, Column};
use super::format::{self, UNKNOWN};
use super::theme::{self, Tone, tone};
use super::write::{self, piece};
use super::{bar, spark, text};
use crate::state::{Lane, Row, Sensor, resample};

/// The least that a bar gets of a line, in percent: without the GPUs' columns, and with them.
const BAR: (usize, usize) = (40, 30);

/// A span that has been open for so long is worth a word.
const STUCK: Duration = Duration::from_secs(5);

/// How the rows are drawn.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// With a line of stages below each.
    pub detailed: bool,
    /// With least, middle and greatest of all rows above them.
    pub summary: bool,
    /// In colour.
    pub colors: bool,
}

/// Draws a heading line, and `shown` of the rows `all` below it.
pub fn draw(area: Rect, frame: &mut Buffer, all: &[Row], shown: &[Row], style: Look) {
    let name = all.iter().map(|row| text::width(&text::clean(&title(row)))).max().unwrap_or(0).clamp(6, 24);
    let (lanes, hardware) = (all.iter().any(|row| row.lane.is_some()), all.iter().any(|row| row.gpu.is_some()));
    let (name, columns) = choose(usize::from(area.width), name, (lanes, hardware));
    let left = name + columns.iter().map(|column| column.width + 1).sum::<usize>() + 1;
    if all.is_empty() {
        return;
    }
    let words = if lanes { ["lane", "one iteration by stage"] } else { ["GPU", "util over time"] };
    draw_heading(area, frame, (name, left), &columns, words);
    let mut at = 1;
    if style.summary {
        draw_summary(area, frame, name, &columns, all);
        at += 3;
    }
    for row in shown {
        let mut cells = vec![piece(&text::left(&title(row), name), Tone::Strong)];
        cells.extend(columns.iter().map(|column| cell(column, row)));
        write::line(area, frame, at, Line::from(cells));
        if let Some(place) = line_of(area, at, left) {
            draw_bar(place, frame, row, style.colors);
        }
        if style.detailed
            && let Some(place) = line_of(area, at + 1, left)
            && let Some(lane) = row.lane
        {
            draw_details(place, frame, lane);
        }
        at += if style.detailed { 2 } else { 1 };
    }
}

fn draw_heading(
    area: Rect,
    frame: &mut Buffer,
    (name, left): (usize, usize),
    columns: &[&Column],
    [title, work]: [&str; 2],
) {
    let mut heading = vec![piece(&text::left(title, name), Tone::Dim)];
    heading.extend(
        columns.iter().map(|column| piece(&format!(" {}", text::right(column.title, column.width)), Tone::Dim)),
    );
    let room = usize::from(area.width).saturating_sub(left + 1);
    let work = if text::width(work) > room { "by stage" } else { work };
    heading.push(piece(&format!("  {work}"), Tone::Dim));
    write::line(area, frame, 0, Line::from(heading));
}

fn draw_summary(area: Rect, frame: &mut Buffer, name: usize, columns: &[&Column], all: &[Row]) {
    let summaries: Vec<_> = columns.iter().map(|column| (column.width, column.summary(all))).collect();
    for (index, word) in ["min", "median", "max"].into_iter().enumerate() {
        let mut cells = vec![piece(&text::left(word, name), Tone::Dim)];
        for (width, summary) in &summaries {
            let value = summary.as_ref().map_or("", |ends| ends[index].as_str());
            cells.push(piece(&format!(" {}", text::right(value, *width)), Tone::Accent));
        }
        write::line(area, frame, index + 1, Line::from(cells));
    }
}

/// The name of a row, of a GPU without a lane its own; with its process where there are several.
fn title(row: &Row) -> String {
    let (name, rank) = match (row.lane, row.gpu) {
        (Some(lane), _) => (lane.name.as_str(), lane.rank),
        (None, gpu) => gpu.map_or(("?", 0), |gpu| (gpu.device.as_str(), gpu.rank)),
    };
    if rank == 0 { name.to_owned() } else { format!("{name} r{rank}") }
}

fn cell(column: &Column, row: &Row) -> Span<'static> {
    let value = column.text(row);
    let as_tone = match value.as_str() {
        "lost" => Tone::Bad,
        "HW heat" | "brake" | "heat" | "HW slow" => Tone::Warn,
        UNKNOWN => Tone::Dim,
        _ if column.title == "device" => Tone::Dim,
        _ => Tone::Plain,
    };
    piece(&format!(" {}", text::right(&value, column.width)), as_tone)
}

/// The columns for which there is room, and the room that is left to the name.
fn choose(width: usize, name: usize, shown: (bool, bool)) -> (usize, Vec<&'static Column>) {
    let bar = width * if shown.1 { BAR.1 } else { BAR.0 } / 100;
    let name = name.min(width.saturating_sub(bar + 1).max(1));
    (name, columns::choose(width.saturating_sub(name + bar + 1), shown))
}

fn line_of(area: Rect, index: usize, left: usize) -> Option<Rect> {
    let (index, left) = (u16::try_from(index).ok()?, u16::try_from(left).ok()?);
    let fits = index < area.height && left < area.width;
    fits.then(|| Rect::new(area.x + left, area.y + index, area.width - left, 1))
}

fn draw_bar(place: Rect, frame: &mut Buffer, row: &Row, colors: bool) {
    let Some(lane) = row.lane else {
        let curve = row.gpu.map_or(&[][..], |gpu| gpu.curve(Sensor::Utilization));
        return spark::draw(place, frame, &resample(curve, usize::from(place.width)), 100.0, tone(Tone::Area));
    };
    if let Some(table) = lane.table.as_ref().filter(|table| table.iterations > 0) {
        let stages = table.rows.iter().filter(|row| row.depth == 0);
        let segments: Vec<_> = stages.map(|row| bar::Segment { stage: &row.stage, share: row.share }).collect();
        bar::draw(place, frame, &segments, colors);
    } else {
        let words = match &lane.inside {
            Some((span, since)) => format!("no iteration yet: in {span} for {}", format::age(*since)),
            None => "no iteration in this window".to_owned(),
        };
        write::line(place, frame, 0, Line::from(piece(&text::fit(&words, usize::from(place.width)), Tone::Dim)));
    }
}

/// The longest stages in milliseconds per iteration, as a legend of the bar's colours.
fn draw_details(place: Rect, frame: &mut Buffer, lane: &Lane) {
    let Some(table) = &lane.table else { return };
    let mut rows: Vec<_> = table.rows.iter().filter(|row| row.depth == 0 && row.share > 0.0).collect();
    rows.sort_by(|a, b| b.share.total_cmp(&a.share));
    let mut pieces = Vec::new();
    let mut room = usize::from(place.width);
    if let Some((span, since)) = lane.inside.as_ref().filter(|(_, since)| *since >= STUCK) {
        let words = text::fit(&format!("in {span} for {}", format::age(*since)), room.saturating_sub(2));
        room -= text::width(&words);
        pieces.push(piece(&format!("{words}  "), Tone::Warn));
        room = room.saturating_sub(2);
    }
    for row in rows {
        let work = row.stage.rsplit_once('.').map_or(row.stage.as_str(), |(_, work)| work);
        let words = format!("{} {}  ", text::clean(work), format::nanoseconds(row.host.mean_ns));
        let Some(left) = room.checked_sub(text::width(&words) + 2) else { break };
        room = left;
        pieces.extend([chip(&row.stage), Span::raw(" "), piece(&words, Tone::Dim)]);
    }
    write::line(place, frame, 0, Line::from(pieces));
}

/// A spot in a stage's colour.
pub fn chip(stage: &str) -> Span<'static> {
    let paint = theme::stage(stage);
    let symbol = if stage == "residue" { "□" } else { "■" };
    Span::styled(symbol, Style::new().fg(paint.ground))
}
