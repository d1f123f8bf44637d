//! Packets in compressed blocks, each of which can be read by itself.
//!
//! | message | fields used |
//! |---|---|
//! | Trace | packet 1 |
//! | TracePacket | timestamp 8, timestamp_clock_id 58, trusted_packet_sequence_id 10, sequence_flags 13, interned_data 12, trace_packet_defaults 59, previous_packet_dropped 42, clock_snapshot 6, track_event 11, track_descriptor 60, compressed_packets 50, trace_uuid 89, trace_attributes 126, recovered_trace_info 138 |
//! | TrackEvent | type 9, name_iid 10, name 23, track_uuid 11, counter_value 30, double_counter_value 44, flow_ids 47, terminating_flow_ids 48, debug_annotations 4 |
//! | InternedData | event_names 2, debug_annotation_names 3 (both: iid 1, name 2) |
//! | DebugAnnotation | name_iid 1, bool 2, uint 3 |
//! | ClockSnapshot | clocks 1 (clock_id 1, timestamp 2, is_incremental 3), primary_trace_clock 2 |
//!
//! A block begins anew: its first packet clears what the sequence has said, and says the clock, the defaults and, as they
//! come, the names again. A reader that loses a block loses nothing else.

use super::event::Event;
use crate::trace::proto::Message;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Write};

/// Bytes of packets after which a block is written.
const BLOCK: usize = 64 << 10;
/// CLOCK_MONOTONIC in Perfetto's numbers.
pub(super) const MONOTONIC: u64 = 3;
/// A clock that only the packets of one sequence know: each time is the distance to the one before.
const DELTA: u64 = 64;

const STATE_CLEARED: u64 = 1;
const NEEDS_STATE: u64 = 2;

/// Kind of a track event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Begin = 1,
    End = 2,
    Instant = 3,
    Counter = 4,
}

/// How a sequence tells the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// By the distance to the packet before: times must not step back.
    Delta,
    /// By the monotonic clock: in any order.
    Absolute,
}

/// Writes one packet outside of any block.
pub(super) fn plain(out: &mut impl Write, sequence: u64, fill: impl FnOnce(&mut Message)) -> io::Result<()> {
    let mut trace = Message::default();
    trace.message(1, |packet| {
        packet.uint(10, sequence);
        fill(packet);
    });
    out.write_all(&trace.0)
}

/// A sequence of packets.
pub(super) struct Sequence<'a, W: Write> {
    out: &'a RefCell<W>,
    id: u64,
    clock: Clock,
    /// The source lost something: the first packet says so.
    dropped: bool,
    /// The block in the making, whether its state is said, and the time of its last event.
    block: Message,
    begun: bool,
    last_ns: i64,
    names: HashMap<String, u64>,
    annotations: HashMap<&'static str, u64>,
    /// Of the packet in the making: names that the block does not know yet, and the event.
    interned: Message,
    event: Message,
}

impl<'a, W: Write> Sequence<'a, W> {
    pub(super) fn new(out: &'a RefCell<W>, id: u64, clock: Clock, dropped: bool) -> Self {
        let (names, annotations) = (HashMap::new(), HashMap::new());
        let (block, interned, event) = Default::default();
        Self { out, id, clock, dropped, block, begun: false, last_ns: 0, names, annotations, interned, event }
    }

    /// Adds a descriptor of a track.
    pub(super) fn descriptor(&mut self, fill: impl FnOnce(&mut Message)) -> io::Result<()> {
        let id = self.id;
        self.block.message(1, |packet| {
            packet.uint(10, id);
            packet.message(60, fill);
        });
        self.full()
    }

    /// Adds an event on a track. `fill` adds its further fields.
    pub(super) fn event(
        &mut self,
        time_ns: i64,
        kind: Type,
        track: u64,
        fill: impl FnOnce(&mut Event<'_>),
    ) -> io::Result<()> {
        if !std::mem::replace(&mut self.begun, true) {
            self.begin_block(time_ns);
        }
        self.event.0.clear();
        self.event.uint(9, kind as u64);
        self.event.uint(11, track);
        let (names, annotations) = (&mut self.names, &mut self.annotations);
        fill(&mut Event { event: &mut self.event, interned: &mut self.interned, names, annotations });
        let time = match self.clock {
            Clock::Delta => time_ns.saturating_sub(self.last_ns).max(0),
            Clock::Absolute => time_ns,
        };
        self.last_ns = self.last_ns.max(time_ns);
        let (id, event, interned) = (self.id, &self.event, &mut self.interned);
        self.block.message(1, |packet| {
            packet.int(8, time);
            packet.uint(10, id);
            packet.uint(13, NEEDS_STATE);
            if !interned.0.is_empty() {
                packet.bytes(12, &interned.0);
                interned.0.clear();
            }
            packet.bytes(11, &event.0);
        });
        self.full()
    }

    /// The state that the packets of the block build on.
    fn begin_block(&mut self, time_ns: i64) {
        self.names.clear();
        self.annotations.clear();
        self.last_ns = time_ns;
        let (id, clock, dropped) = (self.id, self.clock, std::mem::take(&mut self.dropped));
        let default_clock = if clock == Clock::Delta { DELTA } else { MONOTONIC };
        self.block.message(1, |packet| {
            packet.uint(10, id);
            packet.uint(13, STATE_CLEARED);
            if dropped {
                packet.uint(42, 1);
            }
            packet.message(59, |defaults| defaults.uint(58, default_clock));
            if clock == Clock::Delta {
                packet.message(6, |snapshot| {
                    put_clock(snapshot, MONOTONIC, time_ns, false);
                    put_clock(snapshot, DELTA, time_ns, true);
                });
            }
        });
    }

    fn full(&mut self) -> io::Result<()> {
        if self.block.0.len() >= BLOCK { self.flush() } else { Ok(()) }
    }

    /// Writes what there is as a block: what is described in it stands before what refers to it.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.block.0.is_empty() {
            return Ok(());
        }
        // zlib at its fastest: every reader knows it.
        let mut encoder = ZlibEncoder::new(Vec::with_capacity(BLOCK / 3), Compression::fast());
        encoder.write_all(&self.block.0)?;
        let compressed = encoder.finish()?;
        self.block.0.clear();
        self.begun = false;
        let mut trace = Message::default();
        trace.message(1, |packet| packet.bytes(50, &compressed));
        self.out.borrow_mut().write_all(&trace.0)
    }

    /// Writes what is left.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.flush()
    }
}

/// A clock in a snapshot.
pub(super) fn put_clock(snapshot: &mut Message, clock: u64, ns: i64, incremental: bool) {
    snapshot.message(1, |message| {
        message.uint(1, clock);
        message.int(2, ns);
        if incremental {
            message.uint(3, 1);
        }
    });
}
