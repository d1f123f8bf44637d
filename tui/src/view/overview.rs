//! Look once and know who waits for whom.

use std::time::Duration;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::theme::Tone;
use super::write::{self, piece};
use super::{chart, format, lanes, queues};
use crate::state::{Extent, Model, State};

/// Fewer lines than this are no chart.
const CHART: u16 = 6;

/// What each part of the overview gets of its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
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
    let model = &state.model;
    let verdict = draw_verdict(area, frame, model);
    let area = below(area, verdict);
    let plan = plan(area.height, model);
    let extent = Extent {
        page: usize::from(plan.lanes),
        last: model.lanes.len().saturating_sub(usize::from(plan.lanes)),
        lanes: (0..model.lanes.len()).collect(),
    };
    let first = state.scroll.min(extent.last);
    let shown = &model.lanes[first..(first + usize::from(plan.lanes)).min(model.lanes.len())];
    write::heading(area, frame, 0, "Lanes", &lanes_detail(state, first, shown.len()));
    let per_lane = if plan.detailed { 2 } else { 1 };
    let lines = 1 + plan.lanes * per_lane;
    lanes::draw(Rect { height: lines.min(area.height - 1), ..below(area, 1) }, frame, shown, plan.detailed, colors);
    let area = below(area, 1 + lines + plan.gap);
    if plan.queues > 0 {
        let all = model.queues.len();
        let hidden = if usize::from(plan.queues) < all { format!(", {} of {all}", plan.queues) } else { String::new() };
        write::heading(area, frame, 0, "Queues", &format!("depth over time{hidden}"));
        queues::draw(below(area, 1), frame, &model.queues[..usize::from(plan.queues)], plan.queue_tall);
    }
    let used = if plan.queues > 0 { 1 + plan.queues * plan.queue_tall + plan.gap } else { 0 };
    let area = below(area, used);
    if plan.chart > 0 {
        write::heading(area, frame, 0, "Loss", "by step");
        chart::draw(below(area, 1), frame, &chart::Curve::loss(&model.metrics));
    }
    extent
}

/// Lines for everything that the overview has to show.
pub fn wanted_lines(state: &State) -> usize {
    let model = &state.model;
    let queues = if model.queues.is_empty() { 0 } else { 2 + 2 * model.queues.len() };
    let chart = if model.metrics.is_empty() { 0 } else { usize::from(CHART) + 5 };
    3 + model.losses.problems.len().min(3) + 3 + 2 * model.lanes.len() + queues + chart
}

fn below(area: Rect, lines: u16) -> Rect {
    let lines = lines.min(area.height);
    Rect { y: area.y + lines, height: area.height - lines, ..area }
}

/// The verdict and what is wrong with the record; the lines that they took.
fn draw_verdict(area: Rect, frame: &mut Buffer, model: &Model) -> u16 {
    let empty = "nothing recorded yet: the first block comes when an iteration ends";
    let verdict = if model.verdict.is_empty() { empty } else { &model.verdict };
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

fn lanes_detail(state: &State, first: usize, shown: usize) -> String {
    let all = state.model.lanes.len();
    let recorded = |covered: Duration| format!(", {} recorded", format::elapsed(covered));
    let covered = state.model.covered.map_or_else(String::new, recorded);
    let rest = if shown < all { format!(", {}-{} of {all}", first + 1, first + shown) } else { String::new() };
    format!("{}{covered}{rest}", state.window.title())
}

/// Lanes come first, then each queue's line, then comforts in the order of their worth.
fn plan(height: u16, model: &Model) -> Plan {
    let count = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    let (all_lanes, all_queues) = (count(model.lanes.len()), count(model.queues.len()));
    let room = height.saturating_sub(2);
    let beside_lanes = room.saturating_sub(all_lanes.min(room * 2 / 3));
    let queues = all_queues.min(beside_lanes.saturating_sub(1));
    let queue_lines = if queues > 0 { queues + 1 } else { 0 };
    let lanes = all_lanes.min(room.saturating_sub(queue_lines).max(1));
    let mut plan = Plan { lanes, detailed: false, queues, queue_tall: 1, gap: 0, chart: 0 };
    let mut left = room.saturating_sub(queue_lines.saturating_add(lanes));
    let mut take = |lines: u16| {
        let enough = lines <= left;
        left -= if enough { lines } else { 0 };
        enough
    };
    if take(2) {
        plan.gap = 1;
    }
    if lanes == all_lanes && take(lanes) {
        plan.detailed = true;
    }
    if queues > 0 && take(queues) {
        plan.queue_tall = 2;
    }
    if !model.metrics.is_empty() && left >= CHART {
        plan.chart = left;
    }
    plan
}
