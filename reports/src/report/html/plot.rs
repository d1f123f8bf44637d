//! A chart: areas and lines over one x and one y axis. The SVG is stretched to the room there is; its words stand beside it
//! as HTML, at their own size.

use super::axis::{self, Tick};
use super::page::escaped;
use std::fmt::Write as _;

/// The SVG's own units.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 300.0;

/// A chart that grows. Values that are no finite number are left out.
pub(super) struct Plot {
    title: String,
    unit: String,
    x: (f64, f64),
    x_ticks: Vec<Tick>,
    y: (f64, f64),
    y_ticks: Vec<Tick>,
    shapes: String,
    legend: String,
}

/// A stretch of an area: from, to, lower edge, upper edge.
pub(super) type Step = (f64, f64, f64, f64);

impl Plot {
    /// A chart over seconds.
    pub(super) fn over_time(title: &str, unit: &str, x: (f64, f64), y: (f64, f64)) -> Self {
        let x = (x.0, if x.1 > x.0 { x.1 } else { x.0 + 1.0 });
        Self::new(title, unit, x, axis::times(x.0, x.1), y)
    }

    /// A chart over whole numbers.
    pub(super) fn over_steps(title: &str, unit: &str, x: (f64, f64), y: (f64, f64)) -> Self {
        let x = (x.0, if x.1 > x.0 { x.1 } else { x.0 + 1.0 });
        let ticks = axis::numbers(x.0, x.1).2.into_iter().filter(|(at, _)| *at >= x.0 && *at <= x.1);
        Self::new(title, unit, x, ticks.collect(), y)
    }

    fn new(title: &str, unit: &str, x: (f64, f64), x_ticks: Vec<Tick>, y: (f64, f64)) -> Self {
        let (low, high, y_ticks) = axis::numbers(y.0, y.1);
        let (title, unit) = (title.to_owned(), unit.to_owned());
        Self { title, unit, x, x_ticks, y: (low, high), y_ticks, shapes: String::new(), legend: String::new() }
    }

    fn left(&self, x: f64) -> f64 {
        ((x - self.x.0) / (self.x.1 - self.x.0) * WIDTH).clamp(0.0, WIDTH)
    }

    fn top(&self, y: f64) -> f64 {
        (HEIGHT - (y - self.y.0) / (self.y.1 - self.y.0) * HEIGHT).clamp(0.0, HEIGHT)
    }

    /// An area of steps; where they do not touch there is a hole.
    pub(super) fn area(&mut self, class: &str, label: &str, steps: &[Step]) {
        let finite = |step: &&Step| step.2.is_finite() && step.3.is_finite();
        let steps: Vec<&Step> = steps.iter().filter(finite).collect();
        let mut path = String::new();
        for piece in steps.chunk_by(|a, b| a.1 >= b.0) {
            let mut verb = 'M';
            for (from, to, _, high) in piece {
                let (a, b, y) = (self.left(*from), self.left(*to), self.top(*high));
                let _ = write!(path, "{verb}{a:.1} {y:.1}H{b:.1}");
                verb = 'L';
            }
            for (from, to, low, _) in piece.iter().rev() {
                let (a, b, y) = (self.left(*from), self.left(*to), self.top(*low));
                let _ = write!(path, "L{b:.1} {y:.1}H{a:.1}");
            }
            path.push('Z');
        }
        let _ =
            writeln!(self.shapes, "<path class=\"area {class}\" d=\"{path}\"><title>{}</title></path>", escaped(label));
    }

    /// A line from point to point.
    pub(super) fn line(&mut self, class: &str, label: &str, points: &[(f64, f64)]) {
        let finite = points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
        let points: Vec<String> = finite.map(|(x, y)| format!("{:.1},{:.1}", self.left(*x), self.top(*y))).collect();
        let points = match points.as_slice() {
            // A single point is a short stroke, else nobody sees it.
            [only] => format!("{only} {only}"),
            all => all.join(" "),
        };
        let label = escaped(label);
        let _ = writeln!(
            self.shapes,
            "<polyline class=\"line {class}\" points=\"{points}\"><title>{label}</title></polyline>"
        );
    }

    /// What is said when the pointer rests on a stretch.
    pub(super) fn say(&mut self, from: f64, to: f64, lines: &[String]) {
        let (a, b) = (self.left(from), self.left(to));
        let (width, text) = (b - a, lines.iter().map(|line| escaped(line)).collect::<Vec<_>>().join("\n"));
        let _ = writeln!(
            self.shapes,
            "<rect class=\"say\" x=\"{a:.1}\" y=\"0\" width=\"{width:.1}\" height=\"{HEIGHT}\"><title>{text}</title></rect>"
        );
    }

    /// An entry below the chart.
    pub(super) fn legend(&mut self, class: &str, label: &str) {
        let _ = write!(self.legend, "<li><i class=\"{class}\"></i>{}</li>", escaped(label));
    }

    /// The chart as HTML.
    pub(super) fn html(self) -> String {
        let (title, unit) = (escaped(&self.title), escaped(&self.unit));
        let mut html = format!("<figure class=\"plot\"><figcaption>{title} <small>{unit}</small></figcaption>");
        html.push_str("<div class=\"frame\"><div class=\"y\">");
        for (at, word) in &self.y_ticks {
            let bottom = 100.0 - self.top(*at) / HEIGHT * 100.0;
            let _ = write!(html, "<span style=\"bottom:{bottom:.2}%\">{}</span>", escaped(word));
        }
        let _ = writeln!(
            html,
            "</div><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{title}\">"
        );
        for (at, _) in &self.y_ticks {
            let y = self.top(*at);
            let _ = write!(html, "<path class=\"grid\" d=\"M0 {y:.1}H{WIDTH}\"/>");
        }
        let _ = write!(html, "\n{}</svg><div class=\"x\">", self.shapes);
        for (at, word) in &self.x_ticks {
            let left = self.left(*at) / WIDTH * 100.0;
            let _ = write!(html, "<span style=\"left:{left:.2}%\">{}</span>", escaped(word));
        }
        html.push_str("</div></div>");
        if !self.legend.is_empty() {
            let _ = write!(html, "<ul class=\"legend\">{}</ul>", self.legend);
        }
        html.push_str("</figure>");
        html
    }
}
