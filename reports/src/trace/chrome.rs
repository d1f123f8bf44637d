//! Chrome's JSON: a list of events, for viewers that read nothing else. The kernel captures of the run are merged in.
//!
//! The list is always closed: some viewers refuse one that is not. Times are microseconds of the monotonic clock, with
//! the nanoseconds behind the point. Slices are complete events (`X`), on a thread of their own where they would overlap.

mod capture;
mod list;

use super::content::{Content, Laid, RankContent, Tracks, What, device_name, iteration_name};
use super::counts::Counts;
use super::slices::Edge;
use super::source::{Piece, Source};
use super::streams::StreamTrack;
use super::{Options, losses};
use crate::error::Result;
use dflash_timeline::RunDir;
use dflash_timeline::record::{FlowEnd, Severity};
use list::{List, Place, micros, process};
use serde_json::{Value, json};
use std::io::{self, Write};

/// Writes a recording as Chrome JSON, with the kernel captures of `run` if one is given. Returns what was exported, and
/// what is wrong with the captures, one line each.
///
/// # Errors
/// [`crate::Error::NoSuchLane`] and [`crate::Error::NoSuchRank`] if the window asks for what is not there, if the run's
/// directory cannot be listed or a piece not be read, and whatever `out` says.
pub fn chrome(
    source: &Source<'_>,
    options: &Options,
    run: Option<&RunDir>,
    out: &mut impl Write,
) -> Result<(Counts, Vec<String>)> {
    let content = Content::new(source, &options.window);
    if !source.is_file() {
        options.window.check_lanes(content.timeline)?;
    }
    let captures = run.map(capture::files).transpose()?.unwrap_or_default();
    let (mut counts, mut problems) = (Counts::default(), Vec::new());
    let ranks = content.ranks(&mut counts);
    let mut list = List { out, first: true };
    for rank in &ranks {
        describe(rank, options, &mut list)?;
    }
    let mut tracks: Vec<Tracks> = ranks.iter().map(|rank| content.tracks(rank)).collect();
    source.pieces(|piece| {
        let mut all = ranks.iter().zip(&mut tracks);
        Ok(all.try_for_each(|(rank, tracks)| rank_events(&content, piece, (rank, tracks), &mut list, &mut counts))?)
    })?;
    for (at, file) in captures.iter().enumerate() {
        problems.extend(capture::merge(&content, &ranks, file, at as u64, &mut list, &mut counts)?);
    }
    run_events(&content, options, &mut list, &mut counts)?;
    list.close()?;
    Ok((counts, problems))
}

/// Names a rank's process and those of its devices.
fn describe<W: Write>(rank: &RankContent, options: &Options, list: &mut List<'_, W>) -> io::Result<()> {
    let name = format!("rank {}: {}", rank.rank, options.name);
    list.name("process", Place { pid: process(rank.rank), tid: 0 }, &name, process(rank.rank))?;
    for (at, device) in rank.devices.iter().enumerate() {
        let pid = process(rank.rank) + 1 + at as u64;
        let name = format!("rank {} {}", rank.rank, device_name(device));
        list.name("process", Place { pid, tid: 0 }, &name, pid)?;
    }
    Ok(())
}

/// What a piece adds to a rank.
fn rank_events<W: Write>(
    content: &Content<'_>,
    piece: &Piece<'_>,
    (rank, tracks): (&RankContent, &mut Tracks),
    list: &mut List<'_, W>,
    counts: &mut Counts,
) -> io::Result<()> {
    content.add(piece, rank, tracks, counts);
    for laid in &mut tracks.lanes {
        lane_events(content, rank, laid, list, counts)?;
    }
    for stream in tracks.streams.iter_mut().enumerate() {
        device_events(content, rank.rank, stream, list, counts)?;
    }
    counter_events(content, piece, rank.rank, list, counts)
}

fn lane_events<W: Write>(
    content: &Content<'_>,
    rank: &RankContent,
    laid: &mut Laid<What>,
    list: &mut List<'_, W>,
    counts: &mut Counts,
) -> io::Result<()> {
    let lane = laid.lane;
    let name = content.timeline.lane(lane).map_or("?", |lane| lane.name.as_str());
    for step in laid.track.by_ref() {
        let place = Place::lane(rank.rank, lane, step.slot);
        say_slots(list, &mut laid.slots, step.slot, name, |slot| Place::lane(rank.rank, lane, slot))?;
        if let What::End(at) = step.item.what {
            hand_off(rank, at, place, step.time_ns, list)?;
            counts.instants += 1;
            continue;
        }
        if step.edge != Edge::Begin {
            continue;
        }
        counts.slices += 1;
        let (name, args) = described(content, step.item.what);
        list.slice(place, name, (step.item.begin_ns, step.item.end_ns), args)?;
    }
    counts.overlapping += std::mem::take(&mut laid.track.overlapping);
    Ok(())
}

fn say_slots<W: Write>(
    list: &mut List<'_, W>,
    said: &mut usize,
    slot: usize,
    name: &str,
    place: impl Fn(usize) -> Place,
) -> io::Result<()> {
    while *said <= slot {
        let text = if *said == 0 { name.to_owned() } else { format!("{name} ({})", *said + 1) };
        list.name("thread", place(*said), &text, place(*said).tid)?;
        *said += 1;
    }
    Ok(())
}

fn described<'a>(content: &Content<'a>, what: What) -> (&'a str, Value) {
    let timeline = content.timeline;
    match what {
        What::Iteration(iteration) => {
            let args = json!({"number": iteration.number, "cpu_ns": iteration.cpu_ns, "tokens": iteration.tokens});
            (iteration_name(iteration.kind), args)
        }
        What::Span(span) => (timeline.name(span.name), json!({"iteration": span.iteration, "index": span.index})),
        What::Open(open) => (timeline.name(open.name), json!({"open": true})),
        What::End(_) => ("?", Value::Null),
    }
}

/// An end of a hand-off, and of its arrow.
fn hand_off<W: Write>(
    rank: &RankContent,
    at: usize,
    place: Place,
    time_ns: i64,
    list: &mut List<'_, W>,
) -> io::Result<()> {
    let Some(end) = rank.ends.get(at) else { return Ok(()) };
    let takes = end.flow.end == FlowEnd::Take;
    let (name, ts, Place { pid, tid }) = (if takes { "take" } else { "put" }, micros(time_ns), place);
    let args = json!({"id": end.flow.id});
    list.add(&json!({"ph": "i", "s": "t", "name": name, "ts": ts, "pid": pid, "tid": tid, "args": args}))?;
    let Some(arrow) = end.arrow else { return Ok(()) };
    let id = format!("{}:{arrow}", rank.rank);
    let mut event =
        json!({"ph": "s", "cat": "hand-off", "name": "hand-off", "id": id, "ts": ts, "pid": pid, "tid": tid});
    if takes {
        (event["ph"], event["bp"]) = ("f".into(), "e".into());
    }
    list.add(&event)
}

fn device_events<W: Write>(
    content: &Content<'_>,
    rank: u32,
    (which, stream): (usize, &mut StreamTrack),
    list: &mut List<'_, W>,
    counts: &mut Counts,
) -> io::Result<()> {
    let StreamTrack { name, device, track, slots, .. } = stream;
    for step in track.by_ref().filter(|step| step.edge == Edge::Begin) {
        let span = step.item.what;
        let place = Place::stream(rank, *device, which, step.slot);
        say_slots(list, slots, step.slot, name, |slot| Place::stream(rank, *device, which, slot))?;
        counts.slices += 1;
        let args = json!({"iteration": span.iteration, "index": span.index});
        list.slice(place, content.timeline.name(span.name), (step.item.begin_ns, step.item.end_ns), args)?;
    }
    counts.overlapping += std::mem::take(&mut track.overlapping);
    Ok(())
}

fn counter_events<W: Write>(
    content: &Content<'_>,
    piece: &Piece<'_>,
    rank: u32,
    list: &mut List<'_, W>,
    counts: &mut Counts,
) -> io::Result<()> {
    let inside = |ns: i64| content.window.has_time(ns) && piece.begins(ns);
    for sample in piece.timeline.samples.iter().filter(|sample| inside(sample.time_ns)) {
        let counter = content.timeline.counters.get(sample.counter.0 as usize);
        let Some(counter) = counter.filter(|counter| counter.rank == rank) else { continue };
        if !sample.value.is_finite() {
            counts.not_finite += 1;
            continue;
        }
        counts.samples += 1;
        let unit = if counter.unit.is_empty() { "value" } else { &counter.unit };
        let (ts, args) = (micros(sample.time_ns), json!({unit: sample.value}));
        list.add(&json!({"ph": "C", "name": counter.name, "ts": ts, "pid": process(rank), "args": args}))?;
    }
    Ok(())
}

/// Notes, and what was lost.
fn run_events<W: Write>(
    content: &Content<'_>,
    options: &Options,
    list: &mut List<'_, W>,
    counts: &mut Counts,
) -> io::Result<()> {
    for mark in content.timeline.marks.iter().filter(|mark| options.window.has_time(mark.time_ns)) {
        counts.instants += 1;
        let (ts, args) = (micros(mark.time_ns), json!({"warning": mark.severity == Severity::Warning}));
        list.add(
            &json!({"ph": "i", "s": "g", "name": mark.text, "ts": ts, "pid": process(0), "tid": 0, "args": args}),
        )?;
    }
    let totals: serde_json::Map<String, Value> = losses(content.timeline)
        .iter()
        .chain(&counts.named())
        .map(|(name, value)| ((*name).into(), json!(value)))
        .collect();
    let ts = micros(content.end_ns());
    list.add(
        &json!({"ph": "i", "s": "g", "name": "profiler.totals", "ts": ts, "pid": process(0), "tid": 0, "args": totals}),
    )
}
