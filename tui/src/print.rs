//! A frame as text, for `--once` and for pipes.

use ratatui::buffer::{Buffer, Cell};

/// The letters of `frame`, line by line, without trailing spaces and blank lines at the end.
#[must_use]
pub fn frame_text(frame: &Buffer) -> String {
    let mut text = String::new();
    for line in frame.content.chunks(usize::from(frame.area.width).max(1)) {
        let letters: String = visible(line).map(Cell::symbol).collect();
        text.push_str(letters.trim_end());
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

/// The cells that a terminal would print: not those that a wide letter before them covers.
fn visible(line: &[Cell]) -> impl Iterator<Item = &Cell> {
    let mut covered = 0;
    line.iter().filter(move |cell| {
        let hidden = covered > 0;
        covered = if hidden { covered - 1 } else { crate::view::text::width(cell.symbol()).saturating_sub(1) };
        !hidden
    })
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn wide_letters_and_trailing_space() {
        let mut frame = Buffer::empty(Rect::new(0, 0, 8, 3));
        frame.set_string(0, 0, "目标 a", Style::new());
        assert_eq!(frame_text(&frame), "目标 a\n");
    }
}
