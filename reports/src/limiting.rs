//! The limiting side: what keeps its devices from working all the time. Gaps are known over the run; idle time and unsaid
//! waits of the host only in a kernel capture.

use crate::gaps::LaneGaps;
use crate::kernels::{AUTOGRAD, Capture, LaneBusy};
use crate::verdict::Verdict;
use serde::Serialize;

/// One lane of the limiting side.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LimitingLane {
    /// The lane.
    pub lane: String,
    /// Process of a multi-process run.
    pub rank: u32,
    /// Gaps between its device spans, as a share of its time on the device, 0 to 1.
    pub gaps: Option<f64>,
    /// What kernel captures say, one by one.
    pub captures: Vec<LimitingCapture>,
}

/// What a kernel capture says of a lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct LimitingCapture {
    /// Name of the trace's file.
    pub file: String,
    /// The lane's iterations in it.
    pub iterations: u64,
    /// Share of the time from the lane's first stage to its last in which its device did nothing, 0 to 1.
    pub idle: Option<f64>,
    /// Calls of the lane's threads that waited for the device outside of spans `sync.*`; `None`: threads are not known.
    pub unsaid_waits: Option<u64>,
}

/// The lanes of the side that limits; empty where none does, or none has device times.
#[must_use]
pub fn limiting(verdict: &Verdict, gaps: &[LaneGaps], captures: &[Capture]) -> Vec<LimitingLane> {
    let (who, several) = match verdict {
        Verdict::Limits { who, several, .. } => (who, *several),
        Verdict::Mixed { least, .. } => (&least.who, least.several),
        Verdict::Balanced { .. } | Verdict::Unknown => return Vec::new(),
    };
    let role = who.strip_suffix('s').filter(|_| several);
    let is_of = |lane: &str| lane == who || role.is_some_and(|role| lane.split(':').next() == Some(role));
    // Of a lane with several streams, the one that does most.
    let same = |a: &LaneGaps, b: &LaneGaps| (&a.lane, a.rank) == (&b.lane, b.rank);
    let lanes = gaps.chunk_by(same).filter_map(|streams| streams.iter().rev().max_by_key(|stream| stream.device_ns));
    lanes.filter(|lane| is_of(&lane.lane)).map(|lane| of_lane(lane, captures)).collect()
}

fn of_lane(lane: &LaneGaps, captures: &[Capture]) -> LimitingLane {
    let time = lane.total_ns + lane.device_ns;
    let captures = captures.iter().filter_map(|capture| {
        let busy = capture.lanes.iter().find(|busy| (&busy.lane, busy.rank) == (&lane.lane, lane.rank))?;
        Some(LimitingCapture {
            file: capture.file.clone(),
            iterations: busy.iterations,
            idle: idle(busy),
            unsaid_waits: unsaid(capture, &lane.lane),
        })
    });
    LimitingLane {
        lane: lane.lane.clone(),
        rank: lane.rank,
        gaps: (time > 0).then(|| lane.total_ns as f64 / time as f64),
        captures: captures.collect(),
    }
}

/// Over the lane's stages and what lies between them.
fn idle(lane: &LaneBusy) -> Option<f64> {
    let all = lane.stages.iter().map(|stage| &stage.busy).chain([&lane.between]);
    let (window, idle) = all.fold((0, 0), |(window, idle), busy| (window + busy.window_ns, idle + busy.idle_ns));
    (window > 0).then(|| idle as f64 / window as f64)
}

/// Of the lane's own thread, and of those that run its backward passes: which lane's they are is not known.
fn unsaid(capture: &Capture, lane: &str) -> Option<u64> {
    let own = capture.waits.iter().find(|waits| waits.thread == lane)?;
    let backward = lane.starts_with("drafter").then(|| {
        let others = capture.waits.iter().filter(|waits| waits.thread.starts_with(AUTOGRAD));
        others.map(|waits| waits.unsaid).sum::<u64>()
    });
    Some(own.unsaid + backward.unwrap_or_default())
}
