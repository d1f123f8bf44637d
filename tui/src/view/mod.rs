//! Draws a `State` into a frame. Knows nothing of files, keys or terminals.

pub mod adapt;
mod bar;
mod chart;
mod columns;
mod events;
mod format;
mod gantt;
mod gpus;
mod hand_offs;
pub(crate) mod header;
mod heat;
mod help;
mod lanes;
mod overview;
mod panel;
mod queues;
mod spark;
mod stages;
pub(crate) mod text;
mod theme;
mod threads;
mod training;
mod write;

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

use crate::state::{Extent, State, View};
use adapt::{Charset, Colors};

/// Frames smaller than this show only a message.
pub const SMALLEST: (u16, u16) = (60, 15);

/// Draws one frame, and says how much of it there was room for.
pub fn draw(state: &State, frame: &mut Buffer, charset: Charset) -> Extent {
    let area = frame.area;
    let extent = if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        too_small(area, frame);
        Extent::default()
    } else {
        let colors = charset.colors != Colors::None;
        let message = panel::message(state);
        let foot = keys(state) + u16::from(message.is_some());
        let [head, body, foot] =
            Layout::vertical([Constraint::Length(header::LINES), Constraint::Fill(1), Constraint::Length(foot)])
                .areas(area);
        let tabs = header::draw(head, frame, state);
        let extent = draw_view(body, frame, state, colors);
        if let Some(message) = message {
            write::line(Rect { x: foot.x + 1, width: foot.width.saturating_sub(2), ..foot }, frame, 0, message);
        }
        if state.keys {
            header::draw_keys(Rect { y: foot.bottom() - 1, height: 1, ..foot }, frame, state);
        }
        Extent { tabs, ..extent }
    };
    adapt::adapt(frame, charset);
    extent
}

/// Lines that the keys take.
fn keys(state: &State) -> u16 {
    u16::from(state.keys)
}

fn draw_view(area: Rect, frame: &mut Buffer, state: &State, colors: bool) -> Extent {
    if let Some(panel) = &state.panel {
        return panel::draw(area, frame, state, panel);
    }
    match state.view {
        View::Overview => overview::draw(area, frame, state, colors),
        View::Stages => stages::draw(area, frame, state),
        View::Timeline => gantt::draw(area, frame, state, colors),
        View::Queues => queues::draw_view(area, frame, state),
        View::Gpus => gpus::draw(area, frame, state),
        View::Threads => threads::draw(area, frame, state),
        View::Training => training::draw(area, frame, state),
        View::Events => events::draw(area, frame, state),
        View::Help => help::draw(area, frame, state),
    }
}

/// Lines that the overview would like to have: a frame for `--once` is as tall as what it shows.
#[must_use]
pub fn wanted_lines(state: &State) -> u16 {
    let lines = match state.view {
        View::Overview => overview::wanted_lines(state),
        View::Stages => stages::wanted_lines(state),
        View::Gpus => gpus::wanted_lines(state),
        View::Help => help::LINES.len(),
        _ => 30,
    };
    let lines = lines.saturating_add(usize::from(header::LINES + keys(state)));
    u16::try_from(lines).unwrap_or(u16::MAX).clamp(SMALLEST.1, 400)
}

fn too_small(area: Rect, frame: &mut Buffer) {
    let (columns, lines) = SMALLEST;
    let (now_columns, now_lines) = (area.width, area.height);
    let messages =
        [format!("{columns}x{lines} needed"), format!("{now_columns}x{now_lines} here"), "q quits".to_owned()];
    for (index, message) in messages.into_iter().enumerate() {
        write::line(area, frame, index, Line::from(message));
    }
}
