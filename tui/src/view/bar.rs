//! A stacked bar: one iteration, its stages side by side, each as wide as its share.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::theme::{self, Paint};
use super::{format, text};

/// One stretch of a bar.
#[derive(Clone, Debug, PartialEq)]
pub struct Segment<'a> {
    /// Name of the stage.
    pub stage: &'a str,
    /// Part of the whole, 0 to 1.
    pub share: f64,
}

/// Draws `segments` over the first line of `area`. Without `colors`, a line between segments tells them apart.
pub fn draw(area: Rect, frame: &mut Buffer, segments: &[Segment], colors: bool) {
    if area.is_empty() {
        return;
    }
    let shares: Vec<f64> = segments.iter().map(|segment| segment.share).collect();
    let mut x = area.x;
    for (segment, columns) in segments.iter().zip(apportion(&shares, area.width)) {
        let paint = theme::stage(segment.stage);
        let label = caption(segment, usize::from(columns), paint, colors);
        frame.set_string(x, area.y, label, Style::new().fg(paint.ink).bg(paint.ground));
        x += columns;
    }
}

/// What stands in a segment: name and share, the name, or nothing but its fill, in exactly `columns` columns.
fn caption(segment: &Segment, columns: usize, paint: Paint, colors: bool) -> String {
    let work = segment.stage.rsplit_once('.').map_or(segment.stage, |(_, work)| work);
    let work = text::clean(work);
    let both = format!("{work} {}", format::percent(segment.share));
    let edge = if colors { " " } else { "▏" };
    let label = [both, work].into_iter().find(|label| text::width(label) + 2 <= columns);
    let label = label.map_or_else(|| edge.to_owned(), |label| format!("{edge}{label} "));
    let label = if columns == 0 || (columns == 1 && colors) { String::new() } else { label };
    let used = text::width(&label);
    // The fill begins after the caption, or carries the whole segment.
    if used == 1 && colors {
        return paint.fill.to_string().repeat(columns);
    }
    label + &paint.fill.to_string().repeat(columns.saturating_sub(used))
}

/// Whole columns for each share, summing to `columns` when the shares sum to 1 (largest remainders first); a share
/// that is too small for half a column gets none rather than a false one.
fn apportion(shares: &[f64], columns: u16) -> Vec<u16> {
    let exact: Vec<f64> = shares.iter().map(|share| sane(*share) * f64::from(columns)).collect();
    let total = exact.iter().sum::<f64>().min(f64::from(columns)).round();
    let scale = if exact.iter().sum::<f64>() > f64::from(columns) {
        f64::from(columns) / exact.iter().sum::<f64>()
    } else {
        1.0
    };
    let exact: Vec<f64> = exact.iter().map(|value| value * scale).collect();
    let mut whole: Vec<u16> = exact.iter().map(|value| value.floor() as u16).collect();
    let mut order: Vec<usize> = (0..exact.len()).collect();
    order.sort_by(|a, b| exact[*b].fract().total_cmp(&exact[*a].fract()));
    let missing = (total as u16).saturating_sub(whole.iter().sum());
    for index in order.into_iter().take(usize::from(missing)) {
        whole[index] += 1;
    }
    whole
}

fn sane(share: f64) -> f64 {
    if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn line(shares: &[(&str, f64)], columns: u16, colors: bool) -> String {
        let segments: Vec<_> = shares.iter().map(|(stage, share)| Segment { stage, share: *share }).collect();
        let mut frame = Buffer::empty(Rect::new(0, 0, columns, 1));
        draw(frame.area, &mut frame, &segments, colors);
        frame.content.iter().map(ratatui::buffer::Cell::symbol).collect()
    }

    #[test]
    fn wide_segments_carry_their_names() {
        let stages = [("target.wait", 0.3), ("target.forward", 0.6), ("target.put", 0.04), ("residue", 0.06)];
        assert_eq!(line(&stages, 40, true), " wait 30 % · forward 60 %           ··░░");
        assert_eq!(line(&stages, 40, false), "▏wait 30 % ·▏forward 60 %           ▏·▏░");
    }

    proptest! {
        #[test]
        fn a_bar_never_leaves_its_area(shares in prop::collection::vec(-1.0f64..2.0, 0..12), columns in 0u16..300) {
            let cells = apportion(&shares, columns);
            prop_assert!(cells.iter().map(|c| u32::from(*c)).sum::<u32>() <= u32::from(columns));
        }

        #[test]
        fn shares_that_sum_to_one_fill_it(parts in prop::collection::vec(0.001f64..1.0, 1..12), columns in 0u16..300) {
            let sum: f64 = parts.iter().sum();
            let shares: Vec<f64> = parts.iter().map(|part| part / sum).collect();
            prop_assert_eq!(apportion(&shares, columns).iter().map(|c| u32::from(*c)).sum::<u32>(), u32::from(columns));
        }
    }
}
