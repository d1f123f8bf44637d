//! Lines on a frame, clipped to their area.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::text;
use super::theme::{Tone, tone};

/// Writes `line` over line `index` of `area`; what does not fit is not written.
pub fn line(area: Rect, frame: &mut Buffer, index: usize, line: Line) {
    if let Ok(index) = u16::try_from(index)
        && index < area.height
    {
        frame.set_line(area.x, area.y + index, &line, area.width);
    }
}

/// A piece of text, made harmless.
pub fn piece(content: &str, as_tone: Tone) -> Span<'static> {
    Span::styled(text::clean(content), tone(as_tone))
}

/// A heading with a rule to the right edge: `Lanes  last minute ─────`.
pub fn heading(area: Rect, frame: &mut Buffer, index: usize, title: &str, detail: &str) {
    let used = text::width(title) + text::width(detail) + if detail.is_empty() { 1 } else { 3 };
    let rule = "─".repeat(usize::from(area.width).saturating_sub(used));
    let mut pieces = vec![piece(title, Tone::Strong), Span::raw(" ")];
    if !detail.is_empty() {
        pieces.extend([Span::raw(" "), piece(detail, Tone::Dim), Span::raw(" ")]);
    }
    pieces.push(piece(&rule, Tone::Dim));
    line(area, frame, index, Line::from(pieces));
}

/// A labelled value.
#[derive(Clone, Debug)]
pub struct Field {
    label: &'static str,
    value: String,
    tone: Tone,
}

impl Field {
    /// `label value`; an empty label leaves the value alone.
    pub fn new(label: &'static str, value: impl Into<String>, tone: Tone) -> Self {
        Self { label, value: value.into(), tone }
    }
}

/// Fields side by side, in the order of their importance; those that do not fit are left out.
pub fn fields(area: Rect, frame: &mut Buffer, index: usize, fields: &[Field]) {
    let mut pieces = Vec::new();
    let mut used = 0;
    for field in fields {
        let gap = if pieces.is_empty() { "" } else { "   " };
        let label = if field.label.is_empty() { String::new() } else { format!("{} ", field.label) };
        let room = usize::from(area.width).saturating_sub(used + gap.len() + label.len());
        let whole = text::width(&text::clean(&field.value));
        // The first field and bad news are cut rather than left out.
        let needed = pieces.is_empty() || (field.tone == Tone::Bad && room >= 6);
        if whole > room && !needed {
            continue;
        }
        let value = text::fit(&field.value, room);
        used += gap.len() + label.len() + text::width(&value);
        pieces.extend([Span::raw(gap), piece(&label, Tone::Dim), piece(&value, field.tone)]);
    }
    line(area, frame, index, Line::from(pieces));
}

/// `words` broken into lines of at most `columns` columns.
pub fn wrap(words: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text::clean(words).split(' ') {
        match lines.last_mut() {
            Some(last) if text::width(last) + 1 + text::width(word) <= columns => {
                last.push(' ');
                last.push_str(word);
            }
            _ => lines.push(text::fit(word, columns)),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wrap_between_words() {
        assert_eq!(wrap("targets wait 31 % of the time", 14), ["targets wait", "31 % of the", "time"]);
        assert_eq!(wrap("unbreakable", 4), ["unb…"]);
    }

    #[test]
    fn a_field_that_does_not_fit_is_left_out() {
        let mut frame = Buffer::empty(Rect::new(0, 0, 22, 1));
        let all = [Field::new("step", "12", Tone::Plain), Field::new("accuracy", "31 %", Tone::Plain)];
        let all = [&all[..], &[Field::new("tau", "1.9", Tone::Plain)]].concat();
        fields(frame.area, &mut frame, 0, &all);
        assert_eq!(crate::print::frame_text(&frame), "step 12   tau 1.9\n");
    }
}
