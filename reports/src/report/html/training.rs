//! What the training reached, from metrics.csv: loss, accuracy, acceptance length, tokens a second.

use super::Charts;
use super::page::Page;
use super::plot::Plot;
use dflash_timeline::MetricsRow;

/// At most this many points of a line; more are averaged in groups.
const MOST_POINTS: usize = 400;

/// A chart's title and unit, and what it draws of a row.
type What = (&'static str, &'static str, fn(&MetricsRow) -> Option<f64>);

const WHAT: [What; 5] = [
    ("Loss", "", |row| row.loss),
    ("Accuracy", "share of drafted tokens", |row| row.accuracy),
    ("Acceptance length", "tokens", |row| row.acceptance_length),
    ("Throughput", "context tokens/s", |row| row.tokens_per_s),
    ("Gradient norm", "before clipping", |row| row.gradient_norm),
];

/// Nothing at all where nothing was written.
pub(super) fn section(page: &mut Page, charts: &Charts) {
    let plots: Vec<String> = WHAT.into_iter().filter_map(|what| plot(charts, what)).collect();
    if plots.is_empty() {
        return;
    }
    page.element("h2", "", "Training");
    page.element("p", "note", "By optimizer step, from metrics.csv.");
    page.raw("<section class=\"card\"><div class=\"pair\">");
    plots.iter().for_each(|plot| page.raw(plot));
    page.raw("</div></section>");
}

/// A line per run and attempt; `None` if nothing is known of it.
fn plot(charts: &Charts, (title, unit, value): What) -> Option<String> {
    let mut lines: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for (run, rows) in &charts.metrics {
        for attempt in rows.chunk_by(|a, b| a.attempt == b.attempt) {
            let known = attempt.iter().filter_map(|row| Some((row.step as f64, value(row).filter(|v| v.is_finite())?)));
            let points = thinned(&known.collect::<Vec<_>>());
            let number = attempt.first().map_or(1, |row| row.attempt);
            let label = if number > 1 { format!("{run}, attempt {number}") } else { run.clone() };
            if !points.is_empty() {
                lines.push((label, points));
            }
        }
    }
    let all = || lines.iter().flat_map(|(_, points)| points);
    let (first, last) = (all().map(|(x, _)| *x).reduce(f64::min)?, all().map(|(x, _)| *x).reduce(f64::max)?);
    let (low, high) = (all().map(|(_, y)| *y).fold(0.0, f64::min), all().map(|(_, y)| *y).fold(0.0, f64::max));
    let mut plot = Plot::over_steps(title, unit, (first.min(0.0), last), (low, high));
    let several = lines.len() > 1;
    for (at, (label, points)) in lines.iter().enumerate() {
        let class = format!("s{}", at % 12);
        plot.line(&class, label, points);
        if several {
            plot.legend(&class, label);
        }
    }
    Some(plot.html())
}

fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let group = points.len().div_ceil(MOST_POINTS).max(1);
    let mean = |points: &[(f64, f64)]| {
        let count = points.len() as f64;
        (points.iter().map(|(x, _)| x).sum::<f64>() / count, points.iter().map(|(_, y)| y).sum::<f64>() / count)
    };
    points.chunks(group).map(mean).collect()
}
