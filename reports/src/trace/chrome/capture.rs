//! Kernel captures in the merged trace: what ran on a device stands on that device, below the lanes' spans; what the
//! tracer saw of the host has a process of its own. All is moved onto the timeline's clock, event by event, so that a
//! capture of hundreds of megabytes never stands in memory.

use super::super::content::{Content, RankContent};
use super::list::{List, Place, STREAMS, micros, process};
use crate::error::Result;
use crate::kernels::meta::{Meta, Offset};
use crate::kernels::{self, trace};
use crate::trace::counts::Counts;
use dflash_timeline::RunDir;
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::PathBuf;

/// What runs on a device, in Kineto's words.
const ON_DEVICE: [&str; 3] = ["kernel", "gpu_memcpy", "gpu_memset"];
/// Nothing lasts longer.
const LONGEST_NS: f64 = 7.0 * 86_400e9;

/// The captures of a run.
pub(super) fn files(run: &RunDir) -> Result<Vec<PathBuf>> {
    Ok(kernels::files(run)?.into_iter().map(|name| run.path().join(name)).collect())
}

/// Merges one capture in. Returns what is wrong with it.
pub(super) fn merge<W: Write>(
    content: &Content<'_>,
    ranks: &[RankContent],
    path: &std::path::Path,
    number: u64,
    list: &mut List<'_, W>,
    counts: &mut Counts,
) -> io::Result<Vec<String>> {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut problems = Vec::new();
    let meta = Meta::read(&path.with_extension("meta.json")).unwrap_or_else(|problem| {
        problems.push(problem);
        Meta::default()
    });
    let meta = meta.moved(&content.timeline.shifts);
    // Where the times begin may stand behind the events.
    let mut first_look = trace::read(path);
    problems.append(&mut first_look.problems);
    let Some(offset) = meta.offset(content.timeline, first_look.begin()) else {
        problems.push(format!("{name}: no clock anchor: it cannot be placed on the timeline, and was left out"));
        return Ok(problems);
    };
    let Some(rank) = ranks.iter().find(|rank| rank.rank == meta.rank) else { return Ok(problems) };
    let host = process(meta.rank) + 500 + number;
    list.name("process", Place { pid: host, tid: 0 }, &format!("rank {} host, by {name}", meta.rank), host)?;
    let base_ns = first_look.base_ns;
    let mut merging =
        Merging { content, rank, offset, base_ns, host, list, counts, streams: BTreeSet::new(), failed: None };
    // What ends too soon was said at the first look.
    if let Ok(file) = File::open(path) {
        let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 20, file));
        let _ = Top(&mut merging).deserialize(&mut json);
    }
    merging.failed.map_or(Ok(problems), Err)
}

struct Merging<'a, 'b, W: Write> {
    content: &'a Content<'a>,
    rank: &'a RankContent,
    offset: Offset,
    base_ns: i64,
    /// Process of what the tracer saw of the host.
    host: u64,
    list: &'a mut List<'b, W>,
    counts: &'a mut Counts,
    /// Streams that have their name.
    streams: BTreeSet<(u64, u64)>,
    /// Writing failed.
    failed: Option<io::Error>,
}

impl<W: Write> Merging<'_, '_, W> {
    fn event(&mut self, event: &Value) -> io::Result<()> {
        if event["ph"] != "X" {
            return Ok(());
        }
        let Some((begin, end)) = self.times(event) else {
            self.counts.capture_discarded += 1;
            return Ok(());
        };
        let window = self.content.window;
        if window.from_ns.is_some_and(|from| end < from) || window.to_ns.is_some_and(|to| begin >= to) {
            return Ok(());
        }
        let Some(place) = self.place(event)? else {
            self.counts.capture_discarded += 1;
            return Ok(());
        };
        self.counts.captured += 1;
        let mut merged = json!({
            "ph": "X", "name": event["name"].as_str().unwrap_or("?"), "cat": event["cat"].as_str().unwrap_or(""),
            "ts": micros(begin), "dur": micros(end - begin), "pid": place.pid, "tid": place.tid,
        });
        if event["args"].is_object() {
            merged["args"] = event["args"].clone();
        }
        self.list.add(&merged)
    }

    /// Begin and end on the timeline's clock.
    fn times(&self, event: &Value) -> Option<(i64, i64)> {
        let ns = |field: &str| event[field].as_f64().map(|micros| (micros * 1e3).round()).filter(|ns| *ns >= 0.0);
        let (begin, duration) = (ns("ts")?, ns("dur").filter(|ns| *ns <= LONGEST_NS)?);
        let begin = self.offset.monotonic((begin as i64).saturating_add(self.base_ns));
        Some((begin, begin.checked_add(duration as i64)?)).filter(|_| begin >= 0)
    }

    fn place(&mut self, event: &Value) -> io::Result<Option<Place>> {
        let whole = |value: &Value| value.as_u64().or_else(|| value.as_f64().map(|number| number as u64));
        let category = event["cat"].as_str().unwrap_or("");
        let on_device = ON_DEVICE.contains(&category) || category == "gpu_user_annotation";
        if !on_device {
            let tid = whole(&event["tid"]).or_else(|| event["tid"].as_str()?.parse().ok()).unwrap_or(0);
            return Ok(Some(Place { pid: self.host, tid }));
        }
        let Some(device) = whole(&event["args"]["device"]).or_else(|| whole(&event["pid"])) else { return Ok(None) };
        let stream = whole(&event["args"]["stream"]).or_else(|| whole(&event["tid"])).unwrap_or(0);
        let name = format!("cuda:{device}");
        let known = self.rank.devices.iter().position(|known| *known == name);
        // A device without a lane stands behind those that have one.
        let pid = process(self.rank.rank) + 1 + known.map_or(100 + device.min(300), |at| at as u64);
        let annotation = if category == "gpu_user_annotation" { 1 << 19 } else { 0 };
        let tid = stream.min(STREAMS / 2 - 1) + annotation;
        if self.streams.insert((pid, tid)) {
            let text =
                if annotation > 0 { format!("stream {stream}, annotations") } else { format!("stream {stream}") };
            if known.is_none() {
                let name = format!("rank {} GPU {device}", self.rank.rank);
                self.list.name("process", Place { pid, tid: 0 }, &name, pid)?;
            }
            self.list.name("thread", Place { pid, tid }, &text, tid)?;
        }
        Ok(Some(Place { pid, tid }))
    }
}

/// The file: an object with `traceEvents`, or the bare list.
struct Top<'m, 'a, 'b, W: Write>(&'m mut Merging<'a, 'b, W>);

impl<'de, W: Write> DeserializeSeed<'de> for Top<'_, '_, '_, W> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> std::result::Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de, W: Write> Visitor<'de> for Top<'_, '_, '_, W> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a Chrome trace")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            if key == "traceEvents" {
                map.next_value_seed(Top(self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut events: A) -> std::result::Result<(), A::Error> {
        while let Some(event) = events.next_element::<Value>()? {
            if let Err(error) = self.0.event(&event) {
                self.0.failed = Some(error);
                return Err(A::Error::custom("cannot write"));
            }
        }
        Ok(())
    }
}
