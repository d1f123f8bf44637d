//! What a rank's lanes did, on the host and on their devices, as events.

use super::packets::{Sequence, Type};
use super::tracks::{self, Uuid};
use crate::trace::content::{Content, Laid, RankContent, What, iteration_name};
use crate::trace::counts::Counts;
use crate::trace::slices::{Edge, Step};
use crate::trace::streams::StreamTrack;
use dflash_timeline::record::FlowEnd;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};

/// Writes what is ready of the lanes, merged by time.
pub(super) fn host_events<W: Write>(
    content: &Content<'_>,
    rank: &RankContent,
    lanes: &mut [Laid<What>],
    sequence: &mut Sequence<'_, W>,
    counts: &mut Counts,
) -> io::Result<()> {
    let mut next: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::new();
    next.extend(lanes.iter().enumerate().filter_map(|(at, laid)| Some(Reverse((laid.track.next_time()?, at)))));
    while let Some(Reverse((_, at))) = next.pop() {
        let Laid { lane, track, slots, .. } = &mut lanes[at];
        if let Some(step) = track.next() {
            let uuid = Uuid::lane(rank.rank, lane.0 as usize);
            let name = || content.timeline.lane(*lane).map_or("?", |lane| lane.name.as_str()).to_owned();
            say_slot(sequence, slots, step.slot, uuid, name)?;
            host_event(content, rank, sequence, uuid.slot(step.slot).0, &step, counts)?;
        }
        next.extend(track.next_time().map(|time| Reverse((time, at))));
    }
    counts.overlapping += lanes.iter_mut().map(|laid| std::mem::take(&mut laid.track.overlapping)).sum::<u64>();
    Ok(())
}

/// Says what a slot's track is, before its first slice.
pub(super) fn say_slot<W: Write>(
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
        What::Iteration(iteration) => {
            event.name(iteration_name(iteration.kind));
            event.uint("number", iteration.number);
            iteration.cpu_ns.into_iter().for_each(|ns| event.uint("cpu_ns", ns));
            iteration.tokens.into_iter().for_each(|tokens| event.uint("tokens", tokens));
        }
        What::Span(span) => {
            event.name(named(timeline.name(span.name)));
            span.iteration.into_iter().for_each(|number| event.uint("iteration", number));
            span.index.into_iter().for_each(|index| event.uint("index", index));
        }
        What::Open(open) => {
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

/// Writes what is ready of a stream, the rank's `which`-th.
pub(super) fn device_events<W: Write>(
    content: &Content<'_>,
    rank: u32,
    (which, stream): (usize, &mut StreamTrack),
    sequence: &mut Sequence<'_, W>,
    counts: &mut Counts,
) -> io::Result<()> {
    let (uuid, parent) = (Uuid::stream(rank, which), Uuid::gpu(rank, stream.device));
    let StreamTrack { name, track, slots, .. } = stream;
    for step in track.by_ref() {
        if *slots == 0 {
            sequence.descriptor(|track| tracks::below(track, uuid, parent, name, which as u64))?;
            *slots = 1;
        }
        say_slot(sequence, slots, step.slot, uuid, || name.clone())?;
        let kind = if step.edge == Edge::Begin { Type::Begin } else { Type::End };
        counts.slices += u64::from(kind == Type::Begin);
        let span = step.item.what;
        sequence.event(step.time_ns, kind, uuid.slot(step.slot).0, |event| {
            if kind == Type::Begin {
                event.name(named(content.timeline.name(span.name)));
                span.iteration.into_iter().for_each(|number| event.uint("iteration", number));
                span.index.into_iter().for_each(|index| event.uint("index", index));
            }
        })?;
    }
    counts.overlapping += std::mem::take(&mut track.overlapping);
    Ok(())
}

/// Ranks number their arrows for themselves.
fn arrow(rank: u32, number: u32) -> u64 {
    (u64::from(rank) + 1) << 40 | u64::from(number)
}

/// A slice without a name is nobody's.
fn named(name: &str) -> &str {
    if name.is_empty() { "?" } else { name }
}
