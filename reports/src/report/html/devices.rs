//! Queues and GPUs over time.

use super::page::Page;
use super::plot::{Plot, Step};
use crate::history::{CounterHistory, CounterPiece, History};

/// How deep each queue was.
pub(super) fn queues(page: &mut Page, history: &History) {
    let queues = history.counters.iter().filter(|counter| counter.counter.starts_with("queue."));
    let plots: Vec<String> = queues.map(|counter| plot(counter, &queue_title(counter), &counter.unit, 1.0)).collect();
    cards(page, "Queues", "Depth: mean, and from the least to the greatest reading.", &plots);
}

fn queue_title(counter: &CounterHistory) -> String {
    let name = counter.counter.strip_prefix("queue.").unwrap_or(&counter.counter);
    named(name.strip_suffix(".depth").unwrap_or(name), counter.rank)
}

fn named(name: &str, rank: u32) -> String {
    if rank > 0 { format!("{name}, rank {rank}") } else { name.to_owned() }
}

/// What the sensors said. Reasons to clock down are bits, and energy only grows: neither is drawn.
pub(super) fn gpus(page: &mut Page, history: &History) {
    let drawn = |counter: &&CounterHistory| {
        counter.counter.starts_with("gpu.")
            && !counter.counter.ends_with(".throttle")
            && !counter.counter.ends_with(".energy")
    };
    let plots = history.counters.iter().filter(drawn).map(|counter| {
        let name = counter.counter.strip_prefix("gpu.").unwrap_or(&counter.counter);
        let (device, sensor) = name.split_once('.').unwrap_or((name, ""));
        let title = format!("{}: {sensor}", named(device, counter.rank));
        match counter.unit.as_str() {
            "bytes" => plot(counter, &title, "GiB", f64::from(1 << 30)),
            unit => plot(counter, &title, unit, 1.0),
        }
    });
    let plots: Vec<String> = plots.collect();
    cards(page, "GPUs", "Readings of the sensors: mean, and from the least to the greatest.", &plots);
}

fn cards(page: &mut Page, title: &str, note: &str, plots: &[String]) {
    if plots.is_empty() {
        return;
    }
    page.element("h2", "", title);
    page.element("p", "note", note);
    page.raw("<section class=\"card\"><div class=\"pair\">");
    plots.iter().for_each(|plot| page.raw(plot));
    page.raw("</div></section>");
}

fn plot(counter: &CounterHistory, title: &str, unit: &str, of: f64) -> String {
    let at = |piece: &CounterPiece| piece.at_ns as f64 / 1e9;
    let (first, last) = (counter.pieces.first().map_or(0.0, at), counter.pieces.last().map_or(1.0, at));
    let top = counter.pieces.iter().map(|piece| piece.max / of).fold(0.0, f64::max);
    let bottom = counter.pieces.iter().map(|piece| piece.min / of).fold(0.0, f64::min);
    let mut plot = Plot::over_time(title, unit, (first, last), (bottom, top));
    let edges: Vec<f64> = counter.pieces.windows(2).map(|pair| f64::midpoint(at(&pair[0]), at(&pair[1]))).collect();
    let step = |(i, piece): (usize, &CounterPiece)| -> Step {
        let from = if i == 0 { first } else { edges[i - 1] };
        (from, edges.get(i).copied().unwrap_or(last), piece.min / of, piece.max / of)
    };
    let steps: Vec<Step> = counter.pieces.iter().enumerate().map(step).collect();
    plot.area("outer", "from the least to the greatest reading", &steps);
    let points: Vec<(f64, f64)> = counter.pieces.iter().map(|piece| (at(piece), piece.mean / of)).collect();
    plot.line("median", "mean", &points);
    for (piece, (from, to, low, high)) in counter.pieces.iter().zip(&steps) {
        let mean = piece.mean / of;
        plot.say(*from, *to, &[format!("{:.2} s: mean {mean:.2}, {low:.2} to {high:.2} {unit}", at(piece))]);
    }
    plot.html()
}
