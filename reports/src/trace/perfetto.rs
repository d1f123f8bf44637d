//! A Perfetto trace: <https://ui.perfetto.dev> opens it, and what it says stands at the top of `perfetto/packets.rs`.

mod event;
mod lanes;
mod packets;
mod rank;
mod tracks;

use super::content::Content;
use super::counts::Counts;
use super::proto::Message;
use super::source::Source;
use super::{Options, losses};
use crate::error::Result;
use dflash_timeline::Timeline;
use dflash_timeline::record::Severity;
use packets::{Clock, MONOTONIC, Sequence, Type, plain, put_clock};
use rank::RankWriter;
use std::cell::RefCell;
use std::io::{self, Write};

/// CLOCK_REALTIME and CLOCK_BOOTTIME in Perfetto's numbers.
const REALTIME: u64 = 1;
const BOOTTIME: u64 = 6;
/// The sequence of what is the run's as a whole; those of the ranks follow.
const RUN: u64 = 1;

/// Writes a recording as a Perfetto trace, piece by piece.
///
/// # Errors
/// [`crate::Error::NoSuchLane`] and [`crate::Error::NoSuchRank`] if the window asks for what is not there; if a piece cannot
/// be read; and whatever `out` says.
pub fn perfetto(source: &Source<'_>, options: &Options, out: &mut impl Write) -> Result<Counts> {
    let content = Content::new(source, &options.window);
    if !source.is_file() {
        options.window.check_lanes(content.timeline)?;
    }
    let mut counts = Counts::default();
    // Several sequences are in the making at once.
    let out = &RefCell::new(out);
    preamble(&content, options, &mut *out.borrow_mut())?;
    let ranks = content.ranks(&mut counts);
    let mut writers = Vec::new();
    for rank in &ranks {
        writers.push(RankWriter::begin(&content, rank, options, out, &mut counts)?);
    }
    source.pieces(|piece| Ok(writers.iter_mut().try_for_each(|writer| writer.piece(piece, &mut counts))?))?;
    writers.into_iter().try_for_each(RankWriter::end)?;
    marks(&content, options, out, &mut counts)?;
    let mut out = out.borrow_mut();
    attributes(content.timeline, options, &counts, &mut *out)?;
    out.flush()?;
    Ok(counts)
}

/// Sequences of a rank, by what is on them.
fn sequence(rank: u32, which: u64) -> u64 {
    (u64::from(rank) + 1) << 4 | which
}

/// Whether something of the recording is missing.
fn is_lossy(timeline: &Timeline, options: &Options) -> bool {
    let health = &timeline.health;
    timeline.totals.dropped > 0 || health.bad_blocks > 0 || is_torn(timeline, options)
}

fn is_torn(timeline: &Timeline, options: &Options) -> bool {
    let health = &timeline.health;
    // Of a run that goes on, the last block may be in the making.
    health.bad_blocks > 0 || !options.live && (health.skipped_bytes > 0 || !health.ended)
}

/// The clocks, without which a reader cannot relate the times of sequences, and that a torn file is one.
fn preamble(content: &Content<'_>, options: &Options, out: &mut impl Write) -> io::Result<()> {
    let timeline = content.timeline;
    let begin = content.source.reach.extent.map_or(0, |(begin, _)| begin.max(0));
    let anchor = timeline.anchors.iter().find(|anchor| anchor.monotonic_ns >= 0 && anchor.realtime_ns >= 0);
    let monotonic = anchor.map_or(begin, |anchor| anchor.monotonic_ns);
    plain(out, RUN, |packet| {
        packet.message(6, |snapshot| {
            put_clock(snapshot, MONOTONIC, monotonic, false);
            // How long the machine slept is not recorded; nothing here is dated by this clock.
            put_clock(snapshot, BOOTTIME, monotonic, false);
            if let Some(anchor) = anchor {
                put_clock(snapshot, REALTIME, anchor.realtime_ns, false);
            }
            snapshot.uint(2, MONOTONIC);
        });
    })?;
    let name = options
        .name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    plain(out, RUN, |packet| {
        packet.message(89, |uuid| {
            uuid.int(1, anchor.map_or(begin, |anchor| anchor.realtime_ns));
            uuid.int(2, name.cast_signed());
        });
    })?;
    if is_torn(timeline, options) {
        plain(out, RUN, |packet| packet.message(138, |torn| torn.uint(3, timeline.health.skipped_bytes)))?;
    }
    Ok(())
}

/// Notes of the run, and at its end what was lost.
fn marks<W: Write>(content: &Content<'_>, options: &Options, out: &RefCell<W>, counts: &mut Counts) -> io::Result<()> {
    let mut sequence = Sequence::new(out, RUN, Clock::Absolute, false);
    sequence.descriptor(tracks::marks)?;
    let track = tracks::Uuid::marks().0;
    let inside =
        content.timeline.marks.iter().filter(|mark| mark.time_ns >= 0 && options.window.has_time(mark.time_ns));
    for mark in inside {
        counts.instants += 1;
        sequence.event(mark.time_ns, Type::Instant, track, |event| {
            event.text(&mark.text);
            if mark.severity == Severity::Warning {
                event.flag("warning");
            }
        })?;
    }
    sequence.event(content.end_ns(), Type::Instant, track, |event| {
        event.name("profiler.totals");
        losses(content.timeline).iter().for_each(|(name, value)| event.uint(name, *value));
    })?;
    sequence.finish()
}

/// What was recorded, lost and exported, for whoever queries the trace.
fn attributes(timeline: &Timeline, options: &Options, counts: &Counts, out: &mut impl Write) -> io::Result<()> {
    plain(out, RUN, |packet| {
        packet.message(126, |attributes| {
            text(attributes, "dflash.run", &options.name);
            text(attributes, "dflash.version", env!("CARGO_PKG_VERSION"));
            let state = match (timeline.health.ended, options.live) {
                (true, _) => "ended",
                (false, true) => "being written",
                (false, false) => "torn",
            };
            text(attributes, "dflash.state", state);
            losses(timeline).iter().for_each(|(name, value)| number(attributes, &format!("dflash.{name}"), *value));
            counts
                .named()
                .iter()
                .for_each(|(name, value)| number(attributes, &format!("dflash.export.{name}"), *value));
        });
    })
}

fn text(attributes: &mut Message, key: &str, value: &str) {
    attributes.message(1, |attribute| {
        attribute.text(1, key);
        attribute.text(3, value);
    });
}

fn number(attributes: &mut Message, key: &str, value: u64) {
    attributes.message(1, |attribute| {
        attribute.text(1, key);
        attribute.uint(2, value);
    });
}
