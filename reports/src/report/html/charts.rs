//! Each lane's course: its stages on top of each other, and the percentiles of its iterations.

use super::page::Page;
use super::plot::{Plot, Step};
use crate::history::{History, LaneHistory, Piece};
use crate::report::Report;
use crate::stages::{RESIDUE, is_wait};

/// Colours for stages that work; a lane with more takes them again.
const COLOURS: usize = 12;

/// A 99th percentile this many times above every 90th is cut off.
const FAR: f64 = 1.5;

/// Two charts per lane.
pub(super) fn lanes(page: &mut Page, report: &Report, history: &History) {
    if history.lanes.is_empty() {
        page.element("p", "note", crate::report::table::nothing(report));
        return;
    }
    page.element("h2", "", "Over time");
    page.element(
        "p",
        "note",
        "From the begin of the recording. Mean time of a training iteration by stage; and how its time is spread.",
    );
    for lane in &history.lanes {
        let rank = if lane.rank > 0 { format!(", rank {}", lane.rank) } else { String::new() };
        page.raw("<section class=\"card\">");
        page.element("h3", "", &format!("{}{rank}", lane.lane));
        page.raw("<div class=\"pair\">");
        page.raw(&stack(lane));
        page.raw(&bands(lane));
        page.raw("</div></section>");
    }
}

/// The class that colours a stage: what waits is amber, the residue grey, what works has a colour of its own.
pub(super) fn colour(stages: &[String], at: usize) -> String {
    let waits = |name: &str| is_wait(name);
    match stages.get(at).map_or("", String::as_str) {
        RESIDUE => "residue".into(),
        name if name.ends_with(".wait") => "wait".into(),
        name if name.ends_with(".put") => "put".into(),
        _ => format!("s{}", stages[..at].iter().filter(|name| !waits(name)).count() % COLOURS),
    }
}

fn seconds(ns: i64) -> f64 {
    ns as f64 / 1e9
}

fn extent(lane: &LaneHistory) -> (f64, f64) {
    let (first, last) = (lane.pieces.first(), lane.pieces.last());
    let (from, to) =
        (first.map_or(0.0, |piece| seconds(piece.from_ns)), last.map_or(1.0, |piece| seconds(piece.to_ns)));
    // Nearly from the begin is from the begin.
    (if from < (to - from) * 0.05 { from.min(0.0) } else { from }, to)
}

fn milliseconds(ns: f64) -> f64 {
    ns / 1e6
}

fn stack(lane: &LaneHistory) -> String {
    let top = lane.pieces.iter().map(|piece| milliseconds(piece.stages.iter().sum())).fold(0.0, f64::max);
    let mut plot = Plot::over_time("Stages of an iteration", "ms, mean", extent(lane), (0.0, top));
    let mut below = vec![0.0; lane.pieces.len()];
    for (at, stage) in lane.stages.iter().enumerate() {
        let steps: Vec<Step> =
            lane.pieces.iter().zip(&mut below).map(|(piece, below)| step(piece, at, below)).collect();
        let class = colour(&lane.stages, at);
        plot.area(&class, stage, &steps);
        plot.legend(&class, stage);
    }
    for piece in &lane.pieces {
        let times = lane.stages.iter().zip(&piece.stages).filter(|(_, ns)| **ns > 0.0);
        let times = times.map(|(stage, ns)| format!("{stage} {:.3} ms", milliseconds(*ns)));
        let lines: Vec<String> = std::iter::once(heading(piece)).chain(times).collect();
        plot.say(seconds(piece.from_ns), seconds(piece.to_ns), &lines);
    }
    plot.html()
}

fn step(piece: &Piece, stage: usize, below: &mut f64) -> Step {
    let low = *below;
    *below += milliseconds(piece.stages[stage]);
    (seconds(piece.from_ns), seconds(piece.to_ns), low, *below)
}

fn heading(piece: &Piece) -> String {
    let (from, to) = (seconds(piece.from_ns), seconds(piece.to_ns));
    format!("{from:.2} to {to:.2} s, {} iterations", piece.iterations)
}

fn bands(lane: &LaneHistory) -> String {
    let at =
        |percentile: usize| lane.pieces.iter().map(move |piece| milliseconds(piece.percentiles[percentile] as f64));
    let (highest, usual) = (at(5).fold(0.0, f64::max), at(4).fold(0.0, f64::max));
    // One long iteration must not flatten all others: what is far above them is cut off, and said.
    let (top, unit) = if highest > FAR * usual {
        (FAR * usual, format!("ms; p99 up to {highest:.0}"))
    } else {
        (highest, "ms".to_owned())
    };
    let mut plot = Plot::over_time("Percentiles of an iteration", &unit, extent(lane), (0.0, top));
    let mut band = |class: &str, label: &str, low: usize, high: usize| {
        let edges = at(low).zip(at(high));
        let steps = lane.pieces.iter().zip(edges);
        let steps = steps.map(|(piece, (low, high))| (seconds(piece.from_ns), seconds(piece.to_ns), low, high));
        plot.area(class, label, &steps.collect::<Vec<Step>>());
        plot.legend(class, label);
    };
    band("outer", "p10 to p90", 0, 4);
    band("inner", "p25 to p75", 1, 3);
    let middle = |piece: &Piece| seconds(piece.from_ns / 2 + piece.to_ns / 2);
    let mut line = |class: &str, label: &str, percentile: usize| {
        let points: Vec<(f64, f64)> = lane.pieces.iter().map(middle).zip(at(percentile)).collect();
        plot.line(class, label, &points);
        plot.legend(class, label);
    };
    line("median", "p50", 2);
    line("tail", "p99", 5);
    for piece in &lane.pieces {
        let [p10, p25, p50, p75, p90, p99] = piece.percentiles.map(|ns| milliseconds(ns as f64));
        let low = format!("p10 {p10:.3} · p25 {p25:.3} · p50 {p50:.3} ms");
        let high = format!("p75 {p75:.3} · p90 {p90:.3} · p99 {p99:.3} ms");
        plot.say(seconds(piece.from_ns), seconds(piece.to_ns), &[heading(piece), low, high]);
    }
    plot.html()
}
