//! What lies over a view: text that was asked for, a question, the last thing that was said.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::text;
use super::theme::Tone;
use super::write::{self, piece};
use crate::state::{Extent, Panel, State};

/// Draws a panel in place of the view.
pub fn draw(area: Rect, frame: &mut Buffer, state: &State, panel: &Panel) -> Extent {
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let page = usize::from(area.height.saturating_sub(1));
    let last = panel.lines.len().saturating_sub(page);
    let first = state.scroll.min(last);
    let lines =
        format!("lines {}-{} of {}, Esc closes", first + 1, (first + page).min(panel.lines.len()), panel.lines.len());
    write::heading(area, frame, 0, &panel.title, &lines);
    for (index, words) in panel.lines.iter().skip(first).take(page).enumerate() {
        let words = text::fit(words, usize::from(area.width));
        write::line(area, frame, index + 1, Line::from(piece(&words, Tone::Plain)));
    }
    Extent { page, last, ..Extent::default() }
}

/// The line above the keys, if there is something to ask or to say.
pub fn message(state: &State) -> Option<Line<'static>> {
    if let Some(prompt) = &state.prompt {
        let (question, typed) = prompt.words();
        let mut pieces = vec![piece(&question, Tone::Warn), piece(typed, Tone::Strong)];
        if prompt.is_text() {
            pieces.extend([piece("_", Tone::Accent), piece("   Enter takes it, Esc drops it", Tone::Dim)]);
        }
        return Some(Line::from(pieces));
    }
    if let Some(notice) = &state.notice {
        let as_tone = if notice.bad { Tone::Bad } else { Tone::Accent };
        return Some(Line::from(vec![piece(&notice.text, as_tone)]));
    }
    let filter = &state.filter;
    (!filter.is_empty()).then(|| {
        Line::from(vec![
            piece("only rows with ", Tone::Dim),
            piece(filter, Tone::Strong),
            Span::raw("   "),
            piece("Esc shows all", Tone::Dim),
        ])
    })
}
