//! Kernel captures: how long the device was busy and idle, by stage.
//!
//! A capture is a Chrome trace `kernels-*.json` beside the timeline, with `kernels-*.meta.json` that says where on the
//! clock it stands. Busy is the union of all kernels, copies and fills on a device, whoever launched them; idle is the
//! rest of a window, so the two add up. A stage's windows are its device spans. What cannot be placed or trusted is
//! counted, not guessed.

mod event;
mod join;
pub(crate) mod meta;
pub(crate) mod trace;
mod waits;

use crate::error::Result;
use crate::intervals::Union;
use crate::walk::Window;
use dflash_timeline::{ReadOptions, RunDir, Timeline};
use meta::Meta;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;
use trace::Trace;

pub use trace::Discarded;
pub(crate) use waits::AUTOGRAD;
pub use waits::HostWaits;

/// So much before and after a capture is read of the timeline, nanoseconds.
const ABOUT_NS: u64 = 1_000_000_000;

/// One kernel capture.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Capture {
    /// Name of the trace's file.
    pub file: String,
    /// The lane whose iterations were counted, as far as it is known.
    pub lane: Option<String>,
    /// First and last iteration of that lane.
    pub iterations: Option<(u64, u64)>,
    /// What the tracer could not see, in its words.
    pub blind: Vec<String>,
    /// Records that were used.
    pub kernels: u64,
    /// Records that were not.
    pub discarded: Discarded,
    /// What is wrong with the files, one line each.
    pub problems: Vec<String>,
    /// Over the whole capture.
    pub devices: Vec<DeviceBusy>,
    /// By stage; only where the trace could be placed on the timeline's clock.
    pub lanes: Vec<LaneBusy>,
    /// Threads that waited for a device, of those whose names the trace has; only where it could be placed.
    pub waits: Vec<HostWaits>,
}

/// A stretch of device time. `busy_ns + idle_ns = window_ns`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Busy {
    /// Its length.
    pub window_ns: u64,
    /// Time in which at least one kernel ran.
    pub busy_ns: u64,
    /// The rest.
    pub idle_ns: u64,
}

impl Busy {
    fn of(window_ns: u64, busy_ns: u64) -> Self {
        let busy_ns = busy_ns.min(window_ns);
        Self { window_ns, busy_ns, idle_ns: window_ns - busy_ns }
    }

    /// Busy ÷ window; `None` of an empty window.
    #[must_use]
    pub fn share(&self) -> Option<f64> {
        (self.window_ns > 0).then(|| self.busy_ns as f64 / self.window_ns as f64)
    }
}

/// One device over a capture: from its begin to its end, or from the first to the last kernel where those are unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DeviceBusy {
    /// `cuda:0`, ….
    pub device: String,
    /// Kernels, copies and fills.
    pub kernels: u64,
    /// Streams that they ran on.
    pub streams: u64,
    /// How busy it was.
    #[serde(flatten)]
    pub busy: Busy,
}

/// One lane in a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LaneBusy {
    /// The lane.
    pub lane: String,
    /// Its device.
    pub device: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// Iterations with a device span inside of the capture.
    pub iterations: u64,
    /// Its stages in order of first use.
    pub stages: Vec<StageBusy>,
    /// From the first stage's begin to the last one's end, what lies in no stage.
    pub between: Busy,
    /// Device spans that the capture does not hold whole.
    pub cut: u64,
}

/// One stage in a capture.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StageBusy {
    /// The stage.
    pub stage: String,
    /// Device spans.
    pub windows: u64,
    /// How busy the device was in them.
    #[serde(flatten)]
    pub busy: Busy,
}

/// What ran on one device, on whatever clock.
#[derive(Debug, Default)]
struct Device {
    kernels: u64,
    streams: u64,
    busy: Union,
}

/// Reads every capture of a run, by name. What cannot be read of one becomes one of its problems.
///
/// # Errors
/// If the run's directory cannot be listed.
pub fn captures(run: &RunDir, timeline: &Timeline, window: &Window) -> Result<Vec<Capture>> {
    let read = |name| {
        let open = Open::read(run.path(), name);
        Open { meta: open.meta.moved(&timeline.shifts), ..open }
    };
    Ok(files(run)?.into_iter().map(|name| read(name).capture(timeline, window)).collect())
}

/// The same without the run's timeline at hand: of it, only what lies about each capture is read.
pub(crate) fn captures_of_run(run: &RunDir, window: &Window) -> Result<Vec<Capture>> {
    let mut captures = Vec::new();
    for name in files(run)? {
        let mut open = Open::read(run.path(), name);
        if open.meta.rank > 0 {
            // Of the stream only the begin: what the rank says of its clock.
            let nothing = ReadOptions { from_ns: Some(i64::MAX), to_ns: Some(i64::MAX) };
            open.meta = open.meta.moved(&dflash_timeline::read_with(run, &nothing)?.shifts);
        }
        let (from_ns, to_ns) = match open.meta.window() {
            // What began before and had not ended is read too.
            Some((begin, end)) => {
                (Some(begin.saturating_sub_unsigned(ABOUT_NS)), Some(end.saturating_add_unsigned(ABOUT_NS)))
            }
            None => (None, None),
        };
        let timeline = dflash_timeline::read_with(run, &ReadOptions { from_ns, to_ns })?;
        captures.push(open.capture(&timeline, window));
    }
    Ok(captures)
}

/// Names of the captures' files in a run's directory, sorted.
pub(crate) fn files(run: &RunDir) -> Result<Vec<String>> {
    let io = |source| crate::Error::Io { path: run.path().to_owned(), source };
    let mut names = Vec::new();
    for entry in std::fs::read_dir(run.path()).map_err(io)? {
        let name = entry.map_err(io)?.file_name().to_string_lossy().into_owned();
        if name.starts_with("kernels-") && name.ends_with(".json") && !name.ends_with(".meta.json") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// A capture's two files, read.
struct Open {
    file: String,
    meta: Meta,
    trace: Trace,
    problems: Vec<String>,
}

impl Open {
    fn read(directory: &Path, file: String) -> Self {
        let mut problems = Vec::new();
        let path = directory.join(&file);
        let beside = path.with_extension("meta.json");
        let meta = Meta::read(&beside).unwrap_or_else(|problem| {
            problems.push(problem);
            Meta::default()
        });
        let mut trace = trace::read(&path);
        problems.append(&mut trace.problems);
        Self { file, meta, trace, problems }
    }

    fn capture(self, timeline: &Timeline, window: &Window) -> Capture {
        let Self { file, meta, trace, mut problems } = self;
        let offset = meta.offset(timeline, trace.begin());
        if offset.is_none() && trace.kernels() > 0 {
            problems.push("no clock anchor: the kernels cannot be placed on the timeline".into());
        }
        let (kernels, discarded) = (trace.kernels(), trace.discarded);
        let waits = offset.as_ref().map(|offset| waits::host_waits(timeline, &meta, &trace, offset));
        let devices = unions(trace, &offset);
        let lanes = if offset.is_some() { join::lanes(timeline, window, &meta, &devices) } else { Vec::new() };
        Capture {
            file,
            kernels,
            discarded,
            problems,
            devices: devices.iter().filter_map(|(number, device)| over_all(*number, device, &meta)).collect(),
            lanes,
            waits: waits.unwrap_or_default(),
            iterations: meta.first_iteration.zip(meta.last_iteration),
            lane: meta.lane,
            blind: meta.blind,
        }
    }
}

/// The kernels of each device, on the timeline's clock if there is a way to it.
fn unions(trace: Trace, offset: &Option<meta::Offset>) -> BTreeMap<u32, Device> {
    let placed = |ns: i64| offset.as_ref().map_or(ns, |offset| offset.monotonic(ns));
    let devices = trace.devices.into_iter().map(|(number, device)| {
        let kernels = device.kernels.len() as u64;
        let stretches = device.kernels.into_iter().map(|(begin, duration)| {
            let begin = placed(begin.saturating_add(trace.base_ns));
            (begin, begin.saturating_add(duration))
        });
        let (busy, streams) = (Union::of(stretches.collect()), device.streams.len() as u64);
        (number, Device { kernels, streams, busy })
    });
    devices.collect()
}

fn over_all(number: u32, device: &Device, meta: &Meta) -> Option<DeviceBusy> {
    let extent = device.busy.extent()?;
    // A window without a single kernel in it is one on another clock.
    let window = meta.window().filter(|window| device.busy.covered(*window) > 0).unwrap_or(extent);
    let busy = Busy::of(window.1.abs_diff(window.0), device.busy.covered(window));
    Some(DeviceBusy { device: format!("cuda:{number}"), kernels: device.kernels, streams: device.streams, busy })
}
