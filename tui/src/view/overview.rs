//! Look once and know who waits for whom.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::theme::Tone;
use super::write::{self, piece};
use super::{chart, format, heat, lanes, queues};
use crate::state::{Extent, Liveness, MANY, Model, State, View};

/// Fewer lines than this are no chart.
const CHART: u16 = 6;

/// What each part of the overview gets of its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    heat: u16,
    summary: bool,
    lanes: u16,
    detailed: bool,
    queues: u16,
    queue_tall: u16,
    gap: u16,
    chart: u16,
}

/// Draws the verdict, the lanes, the queues and, where there is room, the loss.
pub fn draw(area: Rect, frame: &mut Buffer, state: &State, colors: bool) -> Extent {
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let verdict = draw_verdict(area, frame, &state.model);
    let area = below(area, verdict);
    let (rows, queues) = (state.rows(), state.queues());
    let plan = plan(area, state, rows.len(), queues.len());
    let page = usize::from(plan.lanes);
    let last = rows.len().saturating_sub(page);
    let extent = Extent { page, last, lanes: (0..rows.len()).collect(), ..Extent::default() };
    let first = state.scroll.min(last);
    let shown = &rows[first..(first + page).min(rows.len())];
    write::heading(area, frame, 0, "Lanes", &lanes_detail(state, (first, shown.len(), rows.len())));
    heat::draw(Rect { height: plan.heat.min(area.height - 1), ..below(area, 1) }, frame, &state.model);
    let lines = 1 + if plan.summary { 3 } else { 0 } + plan.lanes * if plan.detailed { 2 } else { 1 };
    let place = below(area, 1 + plan.heat);
    let look = lanes::Look { detailed: plan.detailed, summary: plan.summary, colors };
    lanes::draw(Rect { height: lines.min(place.height), ..place }, frame, &rows, shown, look);
    let area = below(place, lines + plan.gap);
    if plan.queues > 0 {
        let all = queues.len();
        let hidden = if usize::from(plan.queues) < all { format!(", {} of {all}", plan.queues) } else { String::new() };
        write::heading(area, frame, 0, "Queues", &format!("depth over time{hidden}"));
        queues::draw(below(area, 1), frame, &queues[..usize::from(plan.queues)], plan.queue_tall);
    }
    let used = if plan.queues > 0 { 1 + plan.queues * plan.queue_tall + plan.gap } else { 0 };
    let area = below(area, used);
    if plan.chart > 0 {
        write::heading(area, frame, 0, "Loss", "by step");
        chart::draw(below(area, 1), frame, &chart::Curve::loss(&state.model.metrics));
    }
    extent
}

/// Lines for everything that the overview has to show.
pub fn wanted_lines(state: &State) -> usize {
    let model = &state.model;
    let rows = state.rows().len();
    let queues = if model.queues.is_empty() { 0 } else { 2 + 2 * model.queues.len() };
    let chart = if model.metrics.is_empty() { 0 } else { usize::from(CHART) + 5 };
    let many = if rows > MANY { 6 } else { 0 };
    3 + model.losses.problems.len().min(3) + 3 + many + 2 * rows + queues + chart
}

fn below(area: Rect, lines: u16) -> Rect {
    let lines = lines.min(area.height);
    Rect { y: area.y + lines, height: area.height - lines, ..area }
}

/// The verdict and what is wrong with the record; the lines that they took.
fn draw_verdict(area: Rect, frame: &mut Buffer, model: &Model) -> u16 {
    let empty = "nothing recorded yet: the first block comes when an iteration ends";
    let no_run = "no run: these are the GPUs of this machine";
    let verdict = match model.run.liveness {
        Liveness::NoRun => no_run,
        _ if model.verdict.is_empty() => empty,
        _ => &model.verdict,
    };
    let mut lines = 0;
    for words in write::wrap(verdict, usize::from(area.width).saturating_sub(2)).into_iter().take(2) {
        let mark = if lines == 0 { "▸ " } else { "  " };
        write::line(area, frame, lines, Line::from(vec![piece(mark, Tone::Warn), piece(&words, Tone::Strong)]));
        lines += 1;
    }
    let room = if area.height < 16 { 1 } else { 3 };
    for problem in model.losses.problems.iter().take(room) {
        let words = super::text::fit(problem, usize::from(area.width).saturating_sub(2));
        write::line(area, frame, lines, Line::from(vec![Span::raw("  "), piece(&words, Tone::Bad)]));
        lines += 1;
    }
    let gap = usize::from(area.height >= 14);
    u16::try_from(lines + gap).unwrap_or(area.height)
}

fn lanes_detail(state: &State, (first, shown, all): (usize, usize, usize)) -> String {
    let recorded = |covered: Duration| format!(", {} recorded", format::elapsed(covered));
    let covered = state.model.covered.map_or_else(String::new, recorded);
    let rest = if shown < all { format!(", {}-{} of {all}", first + 1, first + shown) } else { String::new() };
    let order = match state.sorted_by(View::Overview) {
        Some("usual") | None if all > MANY => ", worst first".to_owned(),
        Some("usual") | None => String::new(),
        Some(column) => format!(", by {column}"),
    };
    format!("{}{covered}{rest}{order}", state.window.title())
}

/// Lanes come first, then each queue's line, then comforts in the order of their worth.
fn plan(area: Rect, state: &State, lanes: usize, queues: usize) -> Plan {
    let count = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    let many = lanes > MANY;
    let (all_lanes, all_queues) = (count(lanes), count(queues));
    let heat = if many { heat::lines(&state.model, area.width).min(area.height / 4) } else { 0 };
    let summary = many && area.height >= 12;
    let room = area.height.saturating_sub(2 + heat + if summary { 3 } else { 0 });
    let beside_lanes = room.saturating_sub(all_lanes.min(room * 2 / 3));
    let queues = all_queues.min(beside_lanes.saturating_sub(1));
    let queue_lines = if queues > 0 { queues + 1 } else { 0 };
    let lanes = all_lanes.min(room.saturating_sub(queue_lines).max(1));
    let mut plan = Plan { heat, summary, lanes, detailed: false, queues, queue_tall: 1, gap: 0, chart: 0 };
    let mut left = room.saturating_sub(queue_lines.saturating_add(lanes));
    let mut take = |lines: u16| {
        let enough = lines <= left;
        left -= if enough { lines } else { 0 };
        enough
    };
    if take(2) {
        plan.gap = 1;
    }
    if lanes == all_lanes && !many && take(lanes) {
        plan.detailed = true;
    }
    if queues > 0 && take(queues) {
        plan.queue_tall = 2;
    }
    if !state.model.metrics.is_empty() && left >= CHART {
        plan.chart = left;
    }
    plan
}
