//! A frame as an SVG picture, for a README or a report.

mod color;
mod glyph;

use std::fmt::Write;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

use color::{GROUND, INK, hex};

/// Size of a cell in the picture.
const CELL: (f64, f64) = (8.4, 18.0);
/// Space around the frame.
const MARGIN: f64 = 14.0;
/// From a line's top to the foot of its letters.
const BASELINE: f64 = 13.4;

/// Draws `frame` cell by cell on a dark ground. Letters are text (so they can be found and copied), blocks, rules and
/// dots are shapes (so they meet in whatever font the viewer has).
#[must_use]
pub fn frame_svg(frame: &Buffer) -> String {
    let width = f64::from(frame.area.width) * CELL.0 + 2.0 * MARGIN;
    let height = f64::from(frame.area.height) * CELL.1 + 2.0 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.1} {height:.1}\" width=\"{width:.0}\" \
         height=\"{height:.0}\" font-family=\"'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"13.6\">\n\
         <title>dflash top</title>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"{GROUND}\"/>\n"
    );
    for line in 0..frame.area.height {
        let first = usize::from(line) * usize::from(frame.area.width);
        let cells = &frame.content[first..first + usize::from(frame.area.width)];
        draw_line(&mut svg, cells, MARGIN + f64::from(line) * CELL.1);
    }
    svg.push_str("</svg>\n");
    svg
}

fn draw_line(svg: &mut String, cells: &[Cell], top: f64) {
    for run in runs(cells, |cell| colors(cell).1) {
        let ground = colors(&cells[run.start]).1;
        if ground != Color::Reset {
            let (x, width) = (column(run.start), run.len() as f64 * CELL.0);
            let fill = hex(ground, GROUND);
            let height = CELL.1;
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height}\" fill=\"{fill}\"/>"
            );
        }
    }
    for run in runs(cells, |cell| (colors(cell).0, cell.modifier, glyph::is_shape(cell.symbol()))) {
        let first = &cells[run.start];
        let own = if first.modifier.contains(Modifier::REVERSED) { GROUND } else { INK };
        let fill = hex(colors(first).0, own);
        if glyph::is_shape(first.symbol()) {
            glyph::draw(svg, &cells[run.clone()], (column(run.start), top), CELL, &fill);
        } else {
            draw_words(svg, &cells[run.clone()], (run.start, top), &fill);
        }
    }
}

/// The words of a run of equal style, each stretched to its own cells so that columns stay aligned in every font.
fn draw_words(svg: &mut String, cells: &[Cell], (first, top): (usize, f64), fill: &str) {
    let weight = if cells[0].modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
    for word in runs(cells, |cell| cell.symbol().trim().is_empty()) {
        let text: String = cells[word.clone()].iter().map(Cell::symbol).collect();
        if text.trim().is_empty() {
            continue;
        }
        let (x, y, width) = (column(first + word.start), top + BASELINE, word.len() as f64 * CELL.0);
        let _ = writeln!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" textLength=\"{width:.1}\" lengthAdjust=\"spacingAndGlyphs\" fill=\"{fill}\"{weight}>{}</text>",
            escape(&text)
        );
    }
}

fn column(index: usize) -> f64 {
    MARGIN + index as f64 * CELL.0
}

/// Foreground and background as seen.
fn colors(cell: &Cell) -> (Color, Color) {
    if cell.modifier.contains(Modifier::REVERSED) { (cell.bg, cell.fg) } else { (cell.fg, cell.bg) }
}

/// Stretches of cells with the same key.
fn runs<K: PartialEq>(cells: &[Cell], key: impl Fn(&Cell) -> K) -> Vec<std::ops::Range<usize>> {
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if key(&cells[run.start]) == key(cell) => run.end = index + 1,
            _ => runs.push(index..index + 1),
        }
    }
    runs
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    use super::*;

    #[test]
    fn text_is_text_and_blocks_are_shapes() {
        let mut frame = Buffer::empty(Rect::new(0, 0, 12, 1));
        frame.set_string(0, 0, "a<b  ", Style::new().fg(Color::Rgb(1, 2, 3)).add_modifier(Modifier::BOLD));
        frame.set_string(6, 0, "█─⠁", Style::new().bg(Color::Rgb(255, 0, 0)));
        insta::assert_snapshot!(frame_svg(&frame));
    }
}
