//! Reads a Chrome trace as Kineto writes it, event by event: a trace of hundreds of megabytes never stands in memory.

use super::event::{Event, Loose};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// Bytes read at once.
const BUFFER: usize = 1 << 20;
/// No kernel runs for longer; tracers are known to have written durations of centuries.
const LONGEST_NS: f64 = 7.0 * 86_400e9;

/// Records that were not used, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Discarded {
    /// The begin or the duration is missing, or is no number.
    pub unknown: u64,
    /// It begins before time did.
    pub negative: u64,
    /// It ends before it begins.
    pub backwards: u64,
    /// It lasts longer than a week.
    pub endless: u64,
}

impl Discarded {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.unknown + self.negative + self.backwards + self.endless
    }
}

/// What ran on one device: begin and duration, nanoseconds, and on which streams.
#[derive(Debug, Default)]
pub(crate) struct Kernels {
    pub kernels: Vec<(i64, i64)>,
    pub streams: BTreeSet<i64>,
}

/// A call that waited for a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub thread: u64,
    pub begin_ns: i64,
    pub duration_ns: i64,
}

/// What is kept of a trace.
#[derive(Debug, Default)]
pub(crate) struct Trace {
    /// What all begins are relative to, nanoseconds since 1970; 0 where they are absolute.
    pub base_ns: i64,
    pub devices: BTreeMap<u32, Kernels>,
    pub waits: Vec<Wait>,
    /// Names of the process's threads, by number.
    pub threads: BTreeMap<u64, String>,
    pub discarded: Discarded,
    pub problems: Vec<String>,
}

/// Reads a trace as far as it can be read.
pub(crate) fn read(path: &Path) -> Trace {
    let mut trace = Trace::default();
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let outcome = File::open(path).map_err(|error| format!("{name}: cannot read it: {error}")).and_then(|file| {
        let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(BUFFER, file));
        let torn = |error| format!("{name}: torn, read up to there: {error}");
        Top(&mut trace).deserialize(&mut json).and_then(|()| json.end()).map_err(torn)
    });
    trace.problems.extend(outcome.err());
    trace
}

impl Trace {
    pub(crate) fn kernels(&self) -> u64 {
        self.devices.values().map(|device| device.kernels.len() as u64).sum()
    }

    /// The first kernel's begin, nanoseconds since 1970.
    pub(crate) fn begin(&self) -> Option<i64> {
        let begins = self.devices.values().flat_map(|device| &device.kernels).map(|(begin, _)| *begin);
        begins.min().map(|begin| begin.saturating_add(self.base_ns))
    }

    fn add(&mut self, event: &Event) {
        if !event.on_device {
            return self.add_of_host(event);
        }
        let device = event.device.or(event.pid).filter(|d| d.fract() == 0.0 && (0.0..1e6).contains(d));
        let (Some(ts), Some(dur), Some(device)) = (event.ts, event.dur, device) else {
            self.discarded.unknown += 1;
            return;
        };
        let (begin, duration) = ((ts * 1e3).round(), (dur * 1e3).round());
        match (begin, duration) {
            _ if !begin.is_finite() || !duration.is_finite() => self.discarded.unknown += 1,
            _ if begin < 0.0 => self.discarded.negative += 1,
            _ if duration < 0.0 => self.discarded.backwards += 1,
            _ if duration > LONGEST_NS => self.discarded.endless += 1,
            _ => {
                let kernels = self.devices.entry(device as u32).or_default();
                kernels.kernels.push((begin as i64, duration as i64));
                kernels.streams.extend(event.stream.map(|stream| stream as i64));
            }
        }
    }
}

impl Trace {
    /// What happened on no device: waits count, and names of threads. A call without a time is no kernel that is lost.
    fn add_of_host(&mut self, event: &Event) {
        let Some(thread) = event.tid.filter(|tid| *tid >= 0.0).map(|tid| tid as u64) else { return };
        if let Some(name) = &event.thread {
            // Kineto also names the thread that started it, by its number from another list.
            if !name.starts_with("dflash-") {
                self.threads.insert(thread, name.to_string());
            }
        }
        let time = event.ts.zip(event.dur).filter(|(ts, dur)| ts.is_finite() && (0.0..LONGEST_NS / 1e3).contains(dur));
        if let Some((ts, dur)) = time.filter(|_| event.waits) {
            let (begin_ns, duration_ns) = ((ts * 1e3).round() as i64, (dur * 1e3).round() as i64);
            self.waits.push(Wait { thread, begin_ns, duration_ns });
        }
    }
}

#[derive(Deserialize)]
#[serde(field_identifier, rename_all = "camelCase")]
enum TopKey {
    TraceEvents,
    BaseTimeNanoseconds,
    #[serde(other)]
    Other,
}

/// The whole file: an object with `traceEvents`, or the bare list of events.
struct Top<'a>(&'a mut Trace);

impl<'de> DeserializeSeed<'de> for Top<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Top<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Chrome trace")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<TopKey>()? {
            match key {
                TopKey::TraceEvents => map.next_value_seed(Events(self.0))?,
                TopKey::BaseTimeNanoseconds => {
                    if let Loose::Whole(base_ns) = map.next_value()? {
                        self.0.base_ns = base_ns;
                    }
                }
                TopKey::Other => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, events: A) -> Result<(), A::Error> {
        Events(self.0).visit_seq(events)
    }
}

/// The list of events.
struct Events<'a>(&'a mut Trace);

impl<'de> DeserializeSeed<'de> for Events<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Events<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of events")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> Result<(), A::Error> {
        while let Some(event) = events.next_element::<Event>()? {
            self.0.add(&event);
        }
        Ok(())
    }
}
