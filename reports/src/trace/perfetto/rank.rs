//! One rank's tracks and events. Lanes are merged by time into one sequence; devices, hand-offs and counters have one each.

use super::packets::{Clock, Sequence, Type};
use super::tracks::{self, Uuid};
use super::{is_lossy, sequence};
use crate::gpu::parts;
use crate::trace::Options;
use crate::trace::content::{Content, RankContent, What, device_name, iteration_name};
use crate::trace::counts::Counts;
use crate::trace::slices::{Edge, Step, Track};
use dflash_timeline::record::{FlowEnd, LaneId};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

const HOST: u64 = 1;
const DEVICE: u64 = 2;
const HAND_OFFS: u64 = 3;
const COUNTERS: u64 = 4;

/// Writes everything of a rank.
pub(super) fn write(
    content: &Content<'_>,
    rank: &RankContent,
    options: &Options,
    out: &mut impl Write,
    counts: &mut Counts,
) -> io::Result<()> {
    let dropped = is_lossy(content.timeline, options);
    let mut host = Sequence::new(out, sequence(rank.rank, HOST), Clock::Delta, dropped);
    let name = format!("rank {}: {}", rank.rank, options.name);
    host.descriptor(|track| tracks::process(track, rank.rank, &name))?;
    host_events(content, rank, &mut host, counts)?;
    host.finish()?;
    let mut device = Sequence::new(out, sequence(rank.rank, DEVICE), Clock::Absolute, dropped);
    device_events(content, rank, &mut device, counts)?;
    device.finish()?;
    let mut hand_offs = Sequence::new(out, sequence(rank.rank, HAND_OFFS), Clock::Absolute, dropped);
    hand_off_events(content, rank, &mut hand_offs, counts)?;
    hand_offs.finish()?;
    let mut counters = Sequence::new(out, sequence(rank.rank, COUNTERS), Clock::Delta, dropped);
    counter_events(content, rank, &mut counters, counts)?;
    counters.finish()
}

/// The lanes of the rank, merged by time.
fn host_events<W: Write>(
    content: &Content<'_>,
    rank: &RankContent,
    sequence: &mut Sequence<'_, W>,
    counts: &mut Counts,
) -> io::Result<()> {
    let mut lanes: Vec<(LaneId, Track<What>, usize)> = Vec::new();
    for lane in &rank.lanes {
        let name = content.timeline.lane(*lane).map_or("?", |lane| lane.name.as_str());
        sequence.descriptor(|track| tracks::lane(track, rank.rank, lane.0 as usize, name))?;
        lanes.push((*lane, content.lane(*lane, rank, counts), 1));
    }
    let mut next: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
    next.extend(lanes.iter_mut().enumerate().filter_map(|(at, (_, track, _))| Some(Reverse((track.next_time()?, at)))));
    while let Some(Reverse((_, at))) = next.pop() {
        let (lane, track, slots) = &mut lanes[at];
        if let Some(step) = track.next() {
            let uuid = Uuid::lane(rank.rank, lane.0 as usize);
            let name = || content.timeline.lane(*lane).map_or("?", |lane| lane.name.as_str()).to_owned();
            say_slot(sequence, slots, step.slot, uuid, name)?;
            host_event(content, rank, sequence, uuid.slot(step.slot).0, &step, counts)?;
        }
        next.extend(track.next_time().map(|time| Reverse((time, at))));
    }
    counts.overlapping += lanes.iter().map(|(_, track, _)| track.overlapping).sum::<u64>();
    Ok(())
}

/// Says what a slot's track is, before its first slice.
fn say_slot<W: Write>(
    sequence: &mut Sequence<'_, W>,
    said: &mut usize,
    slot: usize,
    uuid: Uuid,
    name: impl Fn() -> String,
) -> io::Result<()> {
    while *said <= slot {
        let text = format!("{} ({})", name(), *said + 1);
        sequence.descriptor(|track| tracks::below(track, uuid.slot(*said), uuid, &text, *said as u64))?;
        *said += 1;
    }
    Ok(())
}

fn host_event<W: Write>(
    content: &Content<'_>,
    rank: &RankContent,
    sequence: &mut Sequence<'_, W>,
    track: u64,
    step: &Step<What>,
    counts: &mut Counts,
) -> io::Result<()> {
    let kind = match step.edge {
        Edge::Begin => Type::Begin,
        Edge::End => return sequence.event(step.time_ns, Type::End, track, |_| ()),
        Edge::Instant => Type::Instant,
    };
    match step.edge {
        Edge::Instant => counts.instants += 1,
        _ => counts.slices += 1,
    }
    let timeline = content.timeline;
    sequence.event(step.time_ns, kind, track, |event| match step.item.what {
        What::Iteration(at) => {
            let Some(iteration) = content.iteration(at) else { return };
            event.name(iteration_name(iteration.kind));
            event.uint("number", iteration.number);
            iteration.cpu_ns.into_iter().for_each(|ns| event.uint("cpu_ns", ns));
            iteration.tokens.into_iter().for_each(|tokens| event.uint("tokens", tokens));
        }
        What::Span(at, _) => {
            let Some(span) = content.span(at) else { return };
            event.name(named(timeline.name(span.name)));
            span.iteration.into_iter().for_each(|number| event.uint("iteration", number));
            span.index.into_iter().for_each(|index| event.uint("index", index));
        }
        What::Open(at) => {
            let Some(open) = content.open(at) else { return };
            event.name(named(timeline.name(open.name)));
            event.flag("open");
        }
        What::End(at) => {
            let Some(end) = rank.ends.get(at) else { return };
            let takes = end.flow.end == FlowEnd::Take;
            event.name(if takes { "take" } else { "put" });
            event.uint("id", end.flow.id);
            end.arrow.into_iter().for_each(|number| event.arrow(arrow(rank.rank, number), takes));
        }
    })
}

fn device_events<W: Write>(
    content: &Content<'_>,
    rank: &RankContent,
    sequence: &mut Sequence<'_, W>,
    counts: &mut Counts,
) -> io::Result<()> {
    for (at, device) in rank.devices.iter().enumerate() {
        let (uuid, parent) = (Uuid::gpu(rank.rank, at), Uuid::process(rank.rank));
        // Behind the lanes.
        let order = 1_000_000 + at as u64;
        sequence.descriptor(|track| tracks::below(track, uuid, parent, &device_name(device), order))?;
    }
    for lane in &rank.lanes {
        let Some(about) = content.timeline.lane(*lane) else { continue };
        let mut track = content.device(*lane, counts);
        let Some(gpu) = rank.devices.iter().position(|device| *device == about.device) else { continue };
        if track.next_time().is_none() {
            continue;
        }
        let (uuid, parent) = (Uuid::stream(rank.rank, lane.0 as usize), Uuid::gpu(rank.rank, gpu));
        let name = format!("stream of {}", about.name);
        sequence.descriptor(|track| tracks::below(track, uuid, parent, &name, u64::from(lane.0)))?;
        let mut slots = 1;
        for step in track.by_ref() {
            say_slot(sequence, &mut slots, step.slot, uuid, || name.clone())?;
            let kind = if step.edge == Edge::Begin { Type::Begin } else { Type::End };
            counts.slices += u64::from(kind == Type::Begin);
            sequence.event(step.time_ns, kind, uuid.slot(step.slot).0, |event| {
                let Some(span) = content.span(step.item.what).filter(|_| kind == Type::Begin) else { return };
                event.name(named(content.timeline.name(span.name)));
                span.iteration.into_iter().for_each(|number| event.uint("iteration", number));
                span.index.into_iter().for_each(|index| event.uint("index", index));
            })?;
        }
        counts.overlapping += track.overlapping;
    }
    Ok(())
}

fn hand_off_events<W: Write>(
    content: &Content<'_>,
    rank: &RankContent,
    sequence: &mut Sequence<'_, W>,
    counts: &mut Counts,
) -> io::Result<()> {
    for (at, ((from, to), mut track)) in content.hand_offs(rank, counts).into_iter().enumerate() {
        let lane = |id: LaneId| content.timeline.lane(id).map_or("?", |lane| lane.name.as_str());
        let name = format!("{} → {}", lane(from), lane(to));
        let (uuid, parent) = (Uuid::hand_off(rank.rank, at), Uuid::process(rank.rank));
        let order = 2_000_000 + at as u64;
        sequence.descriptor(|track| tracks::below(track, uuid, parent, &name, order))?;
        let mut slots = 1;
        for step in track.by_ref() {
            say_slot(sequence, &mut slots, step.slot, uuid, || name.clone())?;
            let begins = step.edge == Edge::Begin;
            counts.slices += u64::from(begins);
            let kind = if begins { Type::Begin } else { Type::End };
            sequence.event(step.time_ns, kind, uuid.slot(step.slot).0, |event| {
                let Some(end) = rank.ends.get(step.item.what).filter(|_| begins) else { return };
                event.name("handed over");
                event.uint("id", end.flow.id);
            })?;
        }
        counts.overlapping += track.overlapping;
    }
    Ok(())
}

fn counter_events<W: Write>(
    content: &Content<'_>,
    rank: &RankContent,
    sequence: &mut Sequence<'_, W>,
    counts: &mut Counts,
) -> io::Result<()> {
    let timeline = content.timeline;
    for (at, counter) in timeline.counters.iter().enumerate().filter(|(_, counter)| counter.rank == rank.rank) {
        let gpu = parts(&counter.name);
        let known = gpu.and_then(|(device, _)| rank.devices.iter().position(|known| known == device));
        let (parent, name) = match (known, gpu) {
            (Some(gpu), Some((_, sensor))) => (Uuid::gpu(rank.rank, gpu), sensor),
            _ => (Uuid::process(rank.rank), counter.name.as_str()),
        };
        let (uuid, order) = (Uuid::counter(rank.rank, at), 3_000_000 + at as u64);
        sequence.descriptor(|track| tracks::counter(track, uuid, parent, name, &counter.unit, order))?;
    }
    for sample in timeline.samples.iter().filter(|sample| content.window.has_time(sample.time_ns)) {
        let at = sample.counter.0 as usize;
        if timeline.counters.get(at).is_none_or(|counter| counter.rank != rank.rank) || sample.time_ns < 0 {
            continue;
        }
        if !sample.value.is_finite() {
            counts.not_finite += 1;
            continue;
        }
        counts.samples += 1;
        let track = Uuid::counter(rank.rank, at).0;
        sequence.event(sample.time_ns, Type::Counter, track, |event| event.value(sample.value))?;
    }
    Ok(())
}

/// Ranks number their arrows for themselves.
fn arrow(rank: u32, number: u64) -> u64 {
    (u64::from(rank) + 1) << 40 | number
}

/// A slice without a name is nobody's.
fn named(name: &str) -> &str {
    if name.is_empty() { "?" } else { name }
}
