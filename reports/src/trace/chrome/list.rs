//! The list of events, and where they stand.

use dflash_timeline::record::LaneId;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Threads of one lane or stream: its slots.
const SLOTS: u64 = 64;
/// Where the threads of the recording's streams begin; below are the numbers that a kernel capture gives them.
pub(super) const STREAMS: u64 = 1 << 20;

/// The list in the making.
pub(super) struct List<'a, W: Write> {
    pub out: &'a mut W,
    pub first: bool,
}

impl<W: Write> List<'_, W> {
    pub(super) fn add(&mut self, event: &Value) -> io::Result<()> {
        self.out.write_all(if std::mem::replace(&mut self.first, false) { b"[\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *self.out, event)?;
        Ok(())
    }

    /// Says a process's or a thread's name, and where it stands among others.
    pub(super) fn name(&mut self, what: &str, place: Place, name: &str, order: u64) -> io::Result<()> {
        let Place { pid, tid } = place;
        self.add(&json!({"ph": "M", "name": format!("{what}_name"), "pid": pid, "tid": tid, "args": {"name": name}}))?;
        let sort = format!("{what}_sort_index");
        self.add(&json!({"ph": "M", "name": sort, "pid": pid, "tid": tid, "args": {"sort_index": order}}))
    }

    pub(super) fn slice(&mut self, place: Place, name: &str, (begin, end): (i64, i64), args: Value) -> io::Result<()> {
        let (ts, dur) = (micros(begin), micros(end.saturating_sub(begin)));
        let Place { pid, tid } = place;
        self.add(&json!({"ph": "X", "name": name, "ts": ts, "dur": dur, "pid": pid, "tid": tid, "args": args}))
    }

    pub(super) fn close(self) -> io::Result<()> {
        self.out.write_all(if self.first { b"[]\n" } else { b"\n]\n" })?;
        self.out.flush()
    }
}

/// A process and a thread of it, as the viewer shows them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub pid: u64,
    pub tid: u64,
}

impl Place {
    pub(super) fn lane(rank: u32, lane: LaneId, slot: usize) -> Self {
        Self { pid: process(rank), tid: 1 + u64::from(lane.0) * SLOTS + slot as u64 }
    }

    pub(super) fn stream(rank: u32, device: usize, which: usize, slot: usize) -> Self {
        Self { pid: process(rank) + 1 + device as u64, tid: STREAMS + which as u64 * SLOTS + slot as u64 }
    }
}

/// A rank's process; those of its devices and captures follow.
pub(super) fn process(rank: u32) -> u64 {
    (u64::from(rank) + 1) * 1000
}

/// Microseconds with three digits behind the point.
pub(super) fn micros(ns: i64) -> Value {
    let magnitude = ns.unsigned_abs();
    let sign = if ns < 0 { "-" } else { "" };
    let text = format!("{sign}{}.{:03}", magnitude / 1000, magnitude % 1000);
    text.parse::<f64>().map_or(Value::Null, |number| json!(number))
}
