//! The last iterations as a Gantt chart: every lane's stages, what ran on its streams, and the batches handed over.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::Line;

use super::theme::{self, Tone, tone};
use super::write::{self, piece};
use super::{format, hand_offs, text};
use crate::state::{Extent, GanttLane, GanttStream, State, Stretch};

/// One line of the chart.
enum Row<'a> {
    /// A depth of a lane's host time.
    Host(&'a GanttLane, usize),
    /// The stages once more, where there is room to make them taller.
    Again(&'a GanttLane),
    /// Between two lanes, where there is room.
    Gap,
    /// One of a lane's streams.
    Device(&'a GanttStream),
    /// What a lane put and took.
    HandOffs(&'a GanttLane),
}

/// From moments to columns.
#[derive(Clone, Copy)]
struct Axis {
    from_ns: i64,
    length_ns: f64,
    columns: u16,
}

impl Axis {
    /// Column and eighth of a moment, clamped to the chart.
    fn at(self, time_ns: i64) -> f64 {
        let share = time_ns.saturating_sub(self.from_ns) as f64 / self.length_ns;
        (share * f64::from(self.columns)).clamp(0.0, f64::from(self.columns))
    }
}

/// Draws the chart from the line that is scrolled to.
pub fn draw(area: Rect, frame: &mut Buffer, state: &State, colors: bool) -> Extent {
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let gantt = &state.model.gantt;
    let journeys = if area.height >= 14 { (area.height / 5).min(8) } else { 0 };
    let rows = rows(state, usize::from(area.height.saturating_sub(2 + journeys)));
    if rows.is_empty() || gantt.to_ns <= gantt.from_ns {
        write::line(area, frame, 0, Line::from(piece("nothing recorded yet", Tone::Dim)));
        return Extent::default();
    }
    let name = rows.iter().map(|row| text::width(&text::clean(&label(row, state)))).max().unwrap_or(0).clamp(8, 20);
    let name = name.min(usize::from(area.width) / 3);
    let left = u16::try_from(name + 1).unwrap_or(area.width);
    let [head, chart, foot] = [0, 2, area.height.saturating_sub(journeys)].map(|y| area.y + y);
    let columns = area.width.saturating_sub(left);
    let axis = Axis { from_ns: gantt.from_ns, length_ns: (gantt.to_ns - gantt.from_ns) as f64, columns };
    draw_scale(Rect { y: head, height: 2.min(area.height), ..area }, frame, state, left, axis);
    let page = usize::from(foot.saturating_sub(chart));
    let last = rows.len().saturating_sub(page);
    let first = state.scroll.min(last);
    for (y, row) in (chart..foot).zip(rows.iter().skip(first)) {
        let words = text::left(&label(row, state), name);
        let as_tone = if matches!(row, Row::Host(_, 0)) { Tone::Strong } else { Tone::Dim };
        write::line(Rect { y, height: 1, ..area }, frame, 0, Line::from(piece(&words, as_tone)));
        let place = Rect { x: area.x + left, y, width: columns, height: 1 };
        draw_row(place, frame, row, axis, colors);
    }
    if journeys > 0 {
        hand_offs::draw_journeys(Rect { y: foot, height: journeys, ..area }, frame, gantt);
    }
    let lanes = rows.iter().enumerate().filter(|(_, row)| matches!(row, Row::Host(_, 0))).map(|(at, _)| at).collect();
    Extent { page, last, lanes, ..Extent::default() }
}

/// The rows, taller and apart where they fit into `room` lines all the same.
fn rows(state: &State, room: usize) -> Vec<Row<'_>> {
    let usual = rows_with(state, false, false);
    let lanes = usual.iter().filter(|row| matches!(row, Row::Host(_, 0))).count();
    match room.saturating_sub(usual.len()) {
        left if left >= 2 * lanes => rows_with(state, true, true),
        left if left >= lanes => rows_with(state, true, false),
        _ => usual,
    }
}

fn rows_with(state: &State, gaps: bool, tall: bool) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for lane in &state.model.gantt.lanes {
        let known = state.model.lanes.get(lane.lane);
        if !state.shows(&[known.map_or("", |lane| &lane.name), known.map_or("", |lane| &lane.device)]) {
            continue;
        }
        if gaps && !rows.is_empty() {
            rows.push(Row::Gap);
        }
        rows.push(Row::Host(lane, 0));
        if tall {
            rows.push(Row::Again(lane));
        }
        rows.extend((1..lane.host.len()).map(|depth| Row::Host(lane, depth)));
        rows.extend(lane.streams.iter().map(Row::Device));
        if !lane.hand_offs.is_empty() {
            rows.push(Row::HandOffs(lane));
        }
    }
    rows
}

fn label(row: &Row, state: &State) -> String {
    let known = |lane: &GanttLane| state.model.lanes.get(lane.lane);
    match row {
        Row::Host(lane, 0) => known(lane).map_or("?".to_owned(), |lane| {
            if lane.rank == 0 { lane.name.clone() } else { format!("{} r{}", lane.name, lane.rank) }
        }),
        Row::Host(_, depth) => format!("{}below", " ".repeat(2 * depth)),
        Row::Device(stream) => format!("  {}", stream.name),
        Row::HandOffs(_) => "  hand-offs".to_owned(),
        Row::Again(_) | Row::Gap => String::new(),
    }
}

/// How long the stretch is and where it lies; and a scale with round numbers.
fn draw_scale(area: Rect, frame: &mut Buffer, state: &State, left: u16, axis: Axis) {
    let gantt = &state.model.gantt;
    let before = state.model.at_ns.map_or(0, |at| at.saturating_sub(gantt.to_ns));
    let place =
        if before > 0 { format!(", {} before the end", format::nanoseconds(before as f64)) } else { String::new() };
    let detail = format!("{}{place}; z Z zoom, arrows move", format::nanoseconds(axis.length_ns));
    write::heading(area, frame, 0, "Timeline", &detail);
    let step = round_step(axis.length_ns, usize::from(axis.columns) / 14);
    let mut ticks = 0.0;
    while ticks < axis.length_ns {
        let column = axis.at(axis.from_ns.saturating_add(ticks as i64)) as u16;
        let words = if ticks == 0.0 { "│0".to_owned() } else { format!("│{}", format::nanoseconds(ticks)) };
        if area.height > 1 && usize::from(column) + text::width(&words) <= usize::from(axis.columns) {
            frame.set_string(area.x + left + column, area.y + 1, words, tone(Tone::Dim));
        }
        ticks += step;
    }
}

/// 1, 2 or 5 times a power of ten, so that at most `most` of them fit.
fn round_step(length: f64, most: usize) -> f64 {
    let least = length / most.max(1) as f64;
    let power = 10f64.powf(least.max(1.0).log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|digit| digit * power).find(|step| *step >= least).unwrap_or(power * 10.0)
}

fn draw_row(place: Rect, frame: &mut Buffer, row: &Row, axis: Axis, colors: bool) {
    match row {
        Row::Host(lane, depth) => {
            let stretches = lane.host.get(*depth).map_or(&[][..], Vec::as_slice);
            draw_stretches(place, frame, stretches, axis, (colors, true));
            if *depth == 0 {
                draw_begins(place, frame, &lane.iterations, axis);
            }
        }
        Row::Again(lane) => {
            let stretches = lane.host.first().map_or(&[][..], Vec::as_slice);
            draw_stretches(place, frame, stretches, axis, (colors, false));
            draw_begins(place, frame, &lane.iterations, axis);
        }
        Row::Gap => {}
        Row::Device(stream) => draw_stretches(place, frame, &stream.stretches, axis, (colors, true)),
        Row::HandOffs(lane) => hand_offs::draw(place, frame, &lane.hand_offs, |time_ns| axis.at(time_ns) as u16),
    }
}

/// Each column shows what took most of it; a stretch with room carries its name. `look`: in colour, with names.
fn draw_stretches(place: Rect, frame: &mut Buffer, stretches: &[Stretch], axis: Axis, look: (bool, bool)) {
    let mut owners: Vec<(f64, Option<usize>)> = vec![(0.25, None); usize::from(axis.columns)];
    for (index, stretch) in stretches.iter().enumerate() {
        let (begin, end) = (axis.at(stretch.begin_ns), axis.at(stretch.end_ns));
        for column in begin as usize..(end.ceil() as usize).min(owners.len()) {
            let covered = end.min(column as f64 + 1.0) - begin.max(column as f64);
            if covered > owners[column].0 {
                owners[column] = (covered, Some(index));
            }
        }
    }
    let mut column = 0;
    for same in owners.chunk_by(|a, b| a.1 == b.1) {
        if let Some(stretch) = same[0].1.and_then(|index| stretches.get(index)) {
            let at = Rect { x: place.x + column, width: same.len() as u16, ..place };
            draw_stretch(at, frame, stretch, look);
        }
        column += same.len() as u16;
    }
}

fn draw_stretch(place: Rect, frame: &mut Buffer, stretch: &Stretch, (colors, named): (bool, bool)) {
    let paint = theme::stage(&stretch.name);
    let work = stretch.name.rsplit_once('.').map_or(stretch.name.as_str(), |(_, work)| work);
    let width = usize::from(place.width);
    let edge = if colors { "" } else { "▏" };
    let whole = format!("{edge}{work}");
    let words = if named && text::width(&text::clean(&whole)) < width { whole } else { edge.to_owned() };
    let mut label = text::fit(&words, width);
    let fill = if colors || paint.fill != ' ' { paint.fill } else { '░' };
    label.extend(std::iter::repeat_n(fill, width.saturating_sub(text::width(&label))));
    frame.set_string(place.x, place.y, label, Style::new().fg(paint.ink).bg(paint.ground));
}

/// A line where each iteration begins.
fn draw_begins(place: Rect, frame: &mut Buffer, iterations: &[Stretch], axis: Axis) {
    // Closer than this they would hide what they divide.
    if iterations.len() * 6 > usize::from(axis.columns) {
        return;
    }
    for iteration in iterations.iter().filter(|iteration| iteration.begin_ns >= axis.from_ns) {
        let column = axis.at(iteration.begin_ns) as u16;
        if column < place.width {
            let cell = &mut frame[(place.x + column, place.y)];
            // Not over a name.
            if !cell.symbol().chars().all(char::is_alphanumeric) {
                cell.set_symbol("│");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_have_round_steps() {
        assert_eq!(round_step(1e9, 10), 1e8);
        assert_eq!(round_step(1.2e9, 10), 2e8);
        assert_eq!(round_step(7e3, 2), 5e3);
        assert_eq!(round_step(0.0, 0), 1.0);
    }
}
