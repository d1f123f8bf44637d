//! One rank's tracks and events. Lanes are merged by time into one sequence; devices, hand-offs and counters have one each.

use super::lanes::{device_events, host_events, say_slot};
use super::packets::{Clock, Sequence, Type};
use super::tracks::{self, Uuid};
use super::{is_lossy, sequence};
use crate::gpu::parts;
use crate::trace::Options;
use crate::trace::content::{Content, RankContent, Tracks, device_name};
use crate::trace::counts::Counts;
use crate::trace::slices::Edge;
use crate::trace::source::Piece;
use dflash_timeline::record::LaneId;
use std::cell::RefCell;
use std::io::{self, Write};

const HOST: u64 = 1;
const DEVICE: u64 = 2;
const HAND_OFFS: u64 = 3;
const COUNTERS: u64 = 4;

/// A rank that is being written, piece by piece.
pub(super) struct RankWriter<'a, W: Write> {
    content: &'a Content<'a>,
    rank: &'a RankContent,
    tracks: Tracks,
    host: Sequence<'a, W>,
    device: Sequence<'a, W>,
    counters: Sequence<'a, W>,
}

impl<'a, W: Write> RankWriter<'a, W> {
    /// Says what there is, and writes what lies across pieces.
    pub(super) fn begin(
        content: &'a Content<'a>,
        rank: &'a RankContent,
        options: &Options,
        out: &'a RefCell<W>,
        counts: &mut Counts,
    ) -> io::Result<Self> {
        let dropped = is_lossy(content.timeline, options);
        let new = |which, clock| Sequence::new(out, sequence(rank.rank, which), clock, dropped);
        let (mut host, mut device) = (new(HOST, Clock::Delta), new(DEVICE, Clock::Absolute));
        let name = format!("rank {}: {}", rank.rank, options.name);
        host.descriptor(|track| tracks::process(track, rank.rank, &name))?;
        let mut tracks = content.tracks(rank);
        for laid in &mut tracks.lanes {
            let name = content.timeline.lane(laid.lane).map_or("?", |lane| lane.name.as_str());
            host.descriptor(|track| tracks::lane(track, rank.rank, laid.lane.0 as usize, name))?;
            laid.slots = 1;
        }
        host.flush()?;
        for (at, name) in rank.devices.iter().enumerate() {
            let (uuid, parent) = (Uuid::gpu(rank.rank, at), Uuid::process(rank.rank));
            // Behind the lanes.
            let order = 1_000_000 + at as u64;
            device.descriptor(|track| tracks::below(track, uuid, parent, &device_name(name), order))?;
        }
        device.flush()?;
        let mut hand_offs = new(HAND_OFFS, Clock::Absolute);
        hand_off_events(content, rank, &mut hand_offs, counts)?;
        hand_offs.finish()?;
        let mut counters = new(COUNTERS, Clock::Delta);
        describe_counters(content, rank, &mut counters)?;
        Ok(Self { content, rank, tracks, host, device, counters })
    }

    /// Writes what a piece adds.
    pub(super) fn piece(&mut self, piece: &Piece<'_>, counts: &mut Counts) -> io::Result<()> {
        let Self { content, rank, tracks, .. } = self;
        content.add(piece, rank, tracks, counts);
        host_events(content, rank, &mut tracks.lanes, &mut self.host, counts)?;
        for stream in tracks.streams.iter_mut().enumerate() {
            device_events(content, rank.rank, stream, &mut self.device, counts)?;
        }
        counter_events(content, rank, piece, &mut self.counters, counts)
    }

    /// Writes what is left.
    pub(super) fn end(self) -> io::Result<()> {
        self.host.finish()?;
        self.device.finish()?;
        self.counters.finish()
    }
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

fn describe_counters<W: Write>(
    content: &Content<'_>,
    rank: &RankContent,
    sequence: &mut Sequence<'_, W>,
) -> io::Result<()> {
    let counters = content.timeline.counters.iter().enumerate();
    for (at, counter) in counters.filter(|(_, counter)| counter.rank == rank.rank) {
        let gpu = parts(&counter.name);
        let known = gpu.and_then(|(device, _)| rank.devices.iter().position(|known| known == device));
        let (parent, name) = match (known, gpu) {
            (Some(gpu), Some((_, sensor))) => (Uuid::gpu(rank.rank, gpu), sensor),
            _ => (Uuid::process(rank.rank), counter.name.as_str()),
        };
        let (uuid, order) = (Uuid::counter(rank.rank, at), 3_000_000 + at as u64);
        sequence.descriptor(|track| tracks::counter(track, uuid, parent, name, &counter.unit, order))?;
    }
    Ok(())
}

fn counter_events<W: Write>(
    content: &Content<'_>,
    rank: &RankContent,
    piece: &Piece<'_>,
    sequence: &mut Sequence<'_, W>,
    counts: &mut Counts,
) -> io::Result<()> {
    let inside = |ns: i64| content.window.has_time(ns) && piece.begins(ns) && ns >= 0;
    for sample in piece.timeline.samples.iter().filter(|sample| inside(sample.time_ns)) {
        let at = sample.counter.0 as usize;
        if content.timeline.counters.get(at).is_none_or(|counter| counter.rank != rank.rank) {
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
