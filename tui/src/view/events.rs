//! What happened, newest first.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::theme::Tone;
use super::write::{self, piece};
use super::{format, text};
use crate::state::{EventKind, Extent, State};

/// Draws the list from the line that is scrolled to.
pub fn draw(area: Rect, frame: &mut Buffer, state: &State) -> Extent {
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let events = state.events();
    if events.is_empty() {
        let words =
            if state.filter.is_empty() { "no warning, checkpoint or mark yet" } else { "no event passes the filter" };
        write::line(area, frame, 0, Line::from(piece(words, Tone::Dim)));
        return Extent::default();
    }
    write::line(area, frame, 0, Line::from(piece("     after  what", Tone::Dim)));
    let room = usize::from(area.width).saturating_sub(24);
    // A text that is too long goes on in the next line: an event's end may be what matters.
    let mut lines = Vec::new();
    for event in events {
        for (index, words) in write::wrap(&event.text, room).into_iter().enumerate() {
            let head = if index == 0 { Some((format::elapsed(event.after), event.kind)) } else { None };
            lines.push((head, words));
        }
    }
    let page = usize::from(area.height.saturating_sub(1));
    let last = lines.len().saturating_sub(page);
    for (index, (head, words)) in lines.iter().skip(state.scroll.min(last)).take(page).enumerate() {
        let (after, kind) = match head {
            Some((after, kind)) => (after.as_str(), Some(*kind)),
            None => ("", None),
        };
        let pieces = vec![
            piece(&text::right(after, 10), Tone::Dim),
            piece(
                &format!("  {}", text::left(kind.map_or("", EventKind::word), 11)),
                kind.map_or(Tone::Plain, tone_of),
            ),
            piece(words, Tone::Plain),
        ];
        write::line(area, frame, index + 1, Line::from(pieces));
    }
    Extent { page, last, ..Extent::default() }
}

fn tone_of(kind: EventKind) -> Tone {
    match kind {
        EventKind::Warning => Tone::Warn,
        EventKind::Checkpoint | EventKind::Evaluation => Tone::Good,
        EventKind::Level => Tone::Accent,
        EventKind::Mark => Tone::Plain,
        EventKind::Log => Tone::Dim,
    }
}
