//! A sparkline that may be several lines tall, and that leaves a gap where nothing was measured.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Draws one column per value, newest at the right edge, from 0 to `top`. The uppermost eighth stays free, so that
/// lines one above the other do not flow together.
pub fn draw(area: Rect, frame: &mut Buffer, values: &[Option<f64>], top: f64, style: Style) {
    let shown = &values[values.len().saturating_sub(usize::from(area.width))..];
    let first = area.right().saturating_sub(shown.len() as u16);
    for (column, value) in (first..area.right()).zip(shown) {
        let Some(value) = value.filter(|value| value.is_finite()) else { continue };
        let eighths = height(value, top, area.height);
        for line in 0..area.height {
            let Some(step) = eighths.saturating_sub(u32::from(line) * 8).checked_sub(1) else { break };
            let symbol = STEPS[step.min(7) as usize];
            frame[(column, area.bottom() - 1 - line)].set_char(symbol).set_style(style);
        }
    }
}

/// Eighths of a line; what was measured shows at least the lowest step, so that 0 differs from "not measured".
fn height(value: f64, top: f64, lines: u16) -> u32 {
    let full = f64::from(lines) * 8.0 - 1.0;
    let share = if top > 0.0 { value / top } else { 0.0 };
    (share * full).round().clamp(1.0, full) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(values: &[Option<f64>], top: f64, width: u16, height: u16) -> Vec<String> {
        let mut frame = Buffer::empty(Rect::new(0, 0, width, height));
        draw(frame.area, &mut frame, values, top, Style::new());
        let cells: Vec<&str> = frame.content.iter().map(ratatui::buffer::Cell::symbol).collect();
        cells.chunks(usize::from(width)).map(<[&str]>::concat).collect()
    }

    #[test]
    fn zero_is_a_line_and_unknown_is_a_gap() {
        assert_eq!(drawn(&[Some(0.0), None, Some(4.0), Some(8.0)], 8.0, 6, 1), ["  ▁ ▄▇"]);
    }

    #[test]
    fn two_lines_have_sixteen_steps() {
        assert_eq!(drawn(&[Some(4.0), Some(6.0), Some(8.0)], 8.0, 3, 2), [" ▃▇", "███"]);
    }

    #[test]
    fn values_that_no_scale_fits_stay_inside() {
        assert_eq!(drawn(&[Some(f64::NAN), Some(1e300), Some(-5.0)], 0.0, 3, 1), [" ▁▁"]);
    }
}
