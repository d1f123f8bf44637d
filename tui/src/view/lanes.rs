//! The lanes of the overview: one line each, and one below it with its stages where there is room.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::format::{self, UNKNOWN, known};
use super::theme::{self, Tone};
use super::write::{self, piece};
use super::{bar, text};
use crate::state::Lane;

/// The least that a bar gets of a line, in percent.
const BAR: usize = 40;

/// A span that has been open for so long is worth a word.
const STUCK: Duration = Duration::from_secs(5);

/// A column: its heading, its width, and the number that it shows.
struct Column {
    title: &'static str,
    width: usize,
    value: fn(&Lane) -> String,
}

/// The columns between name and bar, as they stand.
const COLUMNS: [Column; 6] = [
    Column { title: "device", width: 8, value: |lane| lane.device.clone() },
    Column { title: "it/s", width: 6, value: |lane| known(lane.rate(), format::three_digits) },
    Column { title: "ms/it", width: 7, value: |lane| table_mean(lane) },
    Column { title: "GPU ms", width: 7, value: |lane| device_mean(lane) },
    Column { title: "waits", width: 6, value: |lane| known(lane.waiting(), format::percent) },
    Column {
        title: "CPU",
        width: 6,
        value: |lane| known(lane.table.as_ref().and_then(|t| t.cpu_share), format::percent),
    },
];

/// Which columns stay when it gets narrow, the most telling first.
const PRIORITY: [usize; 6] = [2, 4, 5, 1, 0, 3];

fn table_mean(lane: &Lane) -> String {
    let table = lane.table.as_ref().filter(|table| table.iterations > 0);
    known(table, |table| format::milliseconds(table.total.mean_ns))
}

fn device_mean(lane: &Lane) -> String {
    known(lane.table.as_ref().and_then(|table| table.total_device), |device| format::milliseconds(device.mean_ns))
}

/// Draws a heading line and `lanes` below it, with their stages if `detailed`.
pub fn draw(area: Rect, frame: &mut Buffer, lanes: &[Lane], detailed: bool, colors: bool) {
    let name = lanes.iter().map(|lane| text::width(&text::clean(&title(lane)))).max().unwrap_or(0).clamp(6, 24);
    let (name, columns) = choose(usize::from(area.width), name);
    let left = name + columns.iter().map(|column| column.width + 1).sum::<usize>() + 1;
    let mut heading = vec![piece(&text::left("lane", name), Tone::Dim)];
    heading.extend(
        columns.iter().map(|column| piece(&format!(" {}", text::right(column.title, column.width)), Tone::Dim)),
    );
    heading.push(piece("  one iteration by stage", Tone::Dim));
    if !lanes.is_empty() {
        write::line(area, frame, 0, Line::from(heading));
    }
    for (index, lane) in lanes.iter().enumerate() {
        let at = 1 + index * if detailed { 2 } else { 1 };
        let mut cells = vec![piece(&text::left(&title(lane), name), Tone::Strong)];
        cells.extend(columns.iter().map(|column| cell(column, lane)));
        write::line(area, frame, at, Line::from(cells));
        let Some(place) = line_of(area, at, left) else { continue };
        draw_bar(place, frame, lane, colors);
        if detailed && let Some(place) = line_of(area, at + 1, left) {
            draw_details(place, frame, lane);
        }
    }
}

/// The name of a lane; with its process where there are several.
fn title(lane: &Lane) -> String {
    if lane.rank == 0 { lane.name.clone() } else { format!("{} r{}", lane.name, lane.rank) }
}

fn cell(column: &Column, lane: &Lane) -> Span<'static> {
    let value = (column.value)(lane);
    let tone = if value == UNKNOWN || column.title == "device" { Tone::Dim } else { Tone::Plain };
    piece(&format!(" {}", text::right(&value, column.width)), tone)
}

/// The columns for which there is room beside a legible bar, and the room that is left to the name.
fn choose(width: usize, name: usize) -> (usize, Vec<&'static Column>) {
    let bar = width * BAR / 100;
    let name = name.min(width.saturating_sub(bar + 1).max(1));
    let mut room = width.saturating_sub(name + bar + 1);
    let mut chosen = Vec::new();
    for index in PRIORITY {
        if COLUMNS[index].width < room {
            room -= COLUMNS[index].width + 1;
            chosen.push(index);
        }
    }
    chosen.sort_unstable();
    (name, chosen.into_iter().map(|index| &COLUMNS[index]).collect())
}

fn line_of(area: Rect, index: usize, left: usize) -> Option<Rect> {
    let (index, left) = (u16::try_from(index).ok()?, u16::try_from(left).ok()?);
    let fits = index < area.height && left < area.width;
    fits.then(|| Rect::new(area.x + left, area.y + index, area.width - left, 1))
}

fn draw_bar(place: Rect, frame: &mut Buffer, lane: &Lane, colors: bool) {
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
