//! A curve over the steps of the training.

use dflash_reports::timeline::MetricsRow;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::Widget;
use ratatui::widgets::canvas::{Canvas, Line as Stroke};

use super::theme::{Tone, tone};
use super::write::{self, piece};
use super::{format, text};

/// Columns of the scale at the left.
const SCALE: u16 = 8;

/// Points to connect.
#[derive(Clone, Debug)]
pub struct Curve {
    points: Vec<(f64, f64)>,
    tone: Tone,
    write: fn(f64) -> String,
    floor: Option<f64>,
    /// Curves behind it, on the same scale.
    behind: Vec<Vec<(f64, f64)>>,
}

impl Curve {
    fn new(points: Vec<(f64, f64)>, as_tone: Tone, write: fn(f64) -> String, floor: Option<f64>) -> Self {
        Self { points, tone: as_tone, write, floor, behind: Vec::new() }
    }

    /// The loss.
    pub fn loss(rows: &[MetricsRow]) -> Self {
        Self::new(points(rows, |row| row.loss), Tone::Accent, format::three_digits, None)
    }

    /// The share of drafted tokens that were right, with a curve for each slot behind it; its scale begins at 0.
    pub fn accuracy(rows: &[MetricsRow]) -> Self {
        let slots = rows.iter().map(|row| row.slots.len()).max().unwrap_or(0);
        let of_slot = |slot: usize| points(rows, |row| row.slots.get(slot).copied());
        let curve = Self::new(points(rows, |row| row.accuracy), Tone::Second, format::percent, Some(0.0));
        Self { behind: (0..slots).map(of_slot).collect(), ..curve }
    }

    /// The acceptance length; its scale begins at 1, where drafting gains nothing.
    pub fn tau(rows: &[MetricsRow]) -> Self {
        let points = points(rows, |row| row.acceptance_length);
        Self::new(points, Tone::Good, format::three_digits, Some(1.0))
    }

    /// The learning rate; its scale begins at 0.
    pub fn learning_rate(rows: &[MetricsRow]) -> Self {
        let points = points(rows, |row| row.learning_rate);
        Self::new(points, Tone::Accent, |rate| format!("{rate:.1e}"), Some(0.0))
    }

    /// Whether there is nothing to connect.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }
}

fn points(rows: &[MetricsRow], value: impl Fn(&MetricsRow) -> Option<f64>) -> Vec<(f64, f64)> {
    let known = rows.iter().filter_map(|row| Some((row.step as f64, value(row)?)));
    known.filter(|(_, value)| value.is_finite()).collect()
}

/// Draws `curve` with its scales: the mean of the steps that share a dot.
pub fn draw(area: Rect, frame: &mut Buffer, curve: &Curve) {
    if area.width <= SCALE + 4 || area.height < 3 {
        return;
    }
    let plot = Rect { x: area.x + SCALE, width: area.width - SCALE, height: area.height - 1, ..area };
    let Some(((first, last), (low, high))) = bounds(curve) else {
        write::line(area, frame, 0, Line::from(piece("N/A: metrics.csv has no value for it yet", Tone::Dim)));
        return;
    };
    let columns = usize::from(plot.width) * 2;
    // What is drawn later lies above.
    let behind = curve.behind.iter().map(|points| (points, Tone::Area));
    let all = behind.chain([(&curve.points, curve.tone)]);
    let lines: Vec<_> = all.map(|(points, tone)| (thin(points, (first, last), columns), tone)).collect();
    let canvas = Canvas::default().marker(Marker::Braille).x_bounds([first, last]).y_bounds([low, high]);
    let strokes = |context: &mut ratatui::widgets::canvas::Context| {
        for (dots, as_tone) in &lines {
            let color = tone(*as_tone).fg.unwrap_or_default();
            let ends = dots.windows(2).map(|pair| (pair[0], pair[1])).chain(dots.first().map(|dot| (*dot, *dot)));
            for ((x1, y1), (x2, y2)) in ends {
                context.draw(&Stroke { x1, y1, x2, y2, color });
            }
            context.layer();
        }
    };
    canvas.paint(strokes).render(plot, frame);
    let middle = usize::from(plot.height / 2);
    let scale = |value: f64| Line::from(piece(&text::right(&(curve.write)(value), usize::from(SCALE) - 1), Tone::Dim));
    write::line(area, frame, 0, scale(high));
    if plot.height >= 5 && plot.height % 2 == 1 {
        write::line(area, frame, middle, scale(f64::midpoint(low, high)));
    }
    write::line(area, frame, usize::from(plot.height) - 1, scale(low));
    draw_steps(Rect { y: area.bottom() - 1, height: 1, ..plot }, frame, (first, last));
}

fn draw_steps(place: Rect, frame: &mut Buffer, (first, last): (f64, f64)) {
    let (left, right) = (format!("step {}", format::whole(first)), format::whole(last));
    let gap = usize::from(place.width).saturating_sub(left.len() + right.len());
    let pieces = vec![piece(&left, Tone::Dim), Span::raw(" ".repeat(gap)), piece(&right, Tone::Dim)];
    write::line(place, frame, 0, Line::from(pieces));
}

/// Ranges of steps and of values, never empty ones: a canvas divides by their width.
fn bounds(curve: &Curve) -> Option<((f64, f64), (f64, f64))> {
    let range = |values: &mut dyn Iterator<Item = f64>| {
        values.fold(None, |range: Option<(f64, f64)>, value| {
            Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        })
    };
    let (first, last) = range(&mut curve.points.iter().map(|(step, _)| *step))?;
    let (low, high) = range(&mut curve.points.iter().chain(curve.behind.iter().flatten()).map(|(_, value)| *value))?;
    let low = curve.floor.map_or(low, |floor| floor.min(low));
    let high = if high - low > low.abs() * 1e-9 { high } else { low + low.abs().max(1.0) * 0.1 };
    Some(((first, last.max(first + 1.0)), (low, high)))
}

/// At most `columns` points, each the mean of those that would share its column.
fn thin(points: &[(f64, f64)], (first, last): (f64, f64), columns: usize) -> Vec<(f64, f64)> {
    if points.len() <= columns {
        return points.to_vec();
    }
    let mut sums = vec![(0.0, 0.0, 0_u32); columns];
    for (step, value) in points {
        let column = ((step - first) / (last - first) * columns as f64) as usize;
        let (steps, values, count) = &mut sums[column.min(columns - 1)];
        *steps += step;
        *values += value;
        *count += 1;
    }
    let means = sums.into_iter().filter(|(.., count)| *count > 0);
    means.map(|(steps, values, count)| (steps / f64::from(count), values / f64::from(count))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_points_become_their_means() {
        let points: Vec<_> = (0..100).map(|step| (f64::from(step), f64::from(step % 2))).collect();
        let thinned = thin(&points, (0.0, 99.0), 10);
        assert_eq!(thinned.len(), 10);
        assert!(thinned.iter().all(|(_, value)| (value - 0.5).abs() < 0.1));
    }

    #[test]
    fn a_flat_curve_has_a_scale() {
        let curve = Curve::new(vec![(3.0, 2.0)], Tone::Accent, format::three_digits, None);
        assert_eq!(bounds(&curve), Some(((3.0, 4.0), (2.0, 2.2))));
    }
}
