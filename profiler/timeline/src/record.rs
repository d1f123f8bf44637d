//! What a timeline is made of: one type per record, times in nanoseconds of the host's monotonic clock.

mod account;

use serde::{Deserialize, Serialize};

pub use self::account::{Expired, LaneTotals, OpenSpan, Totals};
pub use crate::later::{Awaited, LaterTime};

/// Index into [`Timeline::names`](crate::Timeline::names).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NameId(pub u32);

/// Index into [`Timeline::lanes`](crate::Timeline::lanes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LaneId(pub u32);

/// One worker's thread of work, with its device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lane {
    /// `loader`, `target:0`, `drafter:1`, ….
    pub name: String,
    /// `cpu`, `cuda:0`, ….
    pub device: String,
    /// Process of a multi-process run, from 0.
    pub rank: u32,
}

/// A finished, named stretch of time on a lane.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span {
    /// Its name, e.g. `drafter.loss`.
    pub name: NameId,
    /// The lane whose thread it ran on.
    pub lane: LaneId,
    /// Number of the iteration it ran in; `None` outside of every iteration.
    pub iteration: Option<u64>,
    /// The number given to the span, e.g. a layer's.
    pub index: Option<u64>,
    /// 0 = directly under an iteration (a *stage*), 1 = under a stage, ….
    pub depth: u8,
    /// Begin, monotonic nanoseconds.
    pub begin_ns: i64,
    /// Host time, nanoseconds.
    pub duration_ns: u64,
    /// Device time, where the span was given a stream and it has been resolved.
    pub device: Option<DeviceTime>,
}

/// A span's time on its CUDA stream, on the host's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceTime {
    /// Begin, monotonic nanoseconds.
    pub begin_ns: i64,
    /// Nanoseconds between the two events.
    pub duration_ns: u64,
    /// The stream; `None` where the recording does not say (format versions 1 and 2).
    pub stream: Option<StreamId>,
}

/// Index into [`Timeline::streams`](crate::Timeline::streams).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamId(pub u32);

/// A stream of work on a device: what runs on it runs one after the other.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stream {
    /// `cuda:0`, ….
    pub device: String,
    /// The framework's number of it: unique within the device and process, 0 for the default stream.
    pub number: i64,
    /// Process of a multi-process run, from 0.
    pub rank: u32,
}

/// Why an iteration ran: kinds other than `Train` are set apart, never averaged in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// An ordinary pass.
    #[default]
    Train,
    /// The first passes, which pay for what happens once.
    Warmup,
    /// A pass that wrote a checkpoint.
    Checkpoint,
    /// A pass of evaluation.
    Eval,
    /// A pass without instrumentation, to measure what instrumentation costs.
    Bare,
    /// A pass that waited for work and learnt that no more comes.
    Drain,
}

/// One pass of a lane's loop. Its stages and its residue add up to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iteration {
    /// The lane.
    pub lane: LaneId,
    /// Counts from 0 on each lane.
    pub number: u64,
    /// Why it ran.
    pub kind: Kind,
    /// Begin, monotonic nanoseconds.
    pub begin_ns: i64,
    /// Host time, nanoseconds.
    pub duration_ns: u64,
    /// CPU time of the lane's own thread, nanoseconds.
    pub cpu_ns: Option<u64>,
    /// Context tokens that it processed, without padding.
    pub tokens: Option<u64>,
}

/// One reading of a counter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Which counter: index into [`Timeline::counters`](crate::Timeline::counters).
    pub counter: CounterId,
    /// When, monotonic nanoseconds.
    pub time_ns: i64,
    /// The value in the counter's unit.
    pub value: f64,
}

/// Index into [`Timeline::counters`](crate::Timeline::counters).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CounterId(pub u32);

/// A series of samples.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Counter {
    /// `queue.batches.depth`, `thread.loader.cpu`, ….
    pub name: String,
    /// `items`, `bytes`, `%`, ….
    pub unit: String,
    /// Process of a multi-process run, from 0.
    pub rank: u32,
}

/// Where a hand-off stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowEnd {
    /// The producer put it.
    Put,
    /// The consumer took it.
    Take,
}

/// One end of a batch's journey from lane to lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Equal at both ends.
    pub id: u64,
    /// Which end this is.
    pub end: FlowEnd,
    /// The lane at this end.
    pub lane: LaneId,
    /// When, monotonic nanoseconds.
    pub time_ns: i64,
}

/// The same moment on two clocks, so that readers can tell the date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub monotonic_ns: i64,
    /// CLOCK_REALTIME, nanoseconds since 1970.
    pub realtime_ns: i64,
}

/// The same moment on a device's clock and on the host's, so that a reader can fit the one to the other again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceAnchor {
    /// The device, e.g. `cuda:0`.
    pub device: NameId,
    /// The device's clock: nanoseconds since an event at the recording's start.
    pub device_ns: i64,
    /// CLOCK_MONOTONIC, nanoseconds: the middle of the bracket.
    pub host_ns: i64,
    /// Half of the bracket's width: how far `host_ns` may be off.
    pub uncertainty_ns: u64,
}

/// A thread's stack at one moment, under the spans that were open on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StackSample {
    /// When, monotonic nanoseconds.
    pub time_ns: i64,
    /// The thread's number in its system.
    pub tid: u32,
    /// The thread's name.
    pub thread: NameId,
    /// The lane that it works for, itself or on another thread's behalf (autograd).
    pub lane: Option<LaneId>,
    /// The lane's iteration.
    pub iteration: Option<u64>,
    /// Open spans, outermost first.
    pub spans: Vec<NameId>,
    /// Functions, outermost first.
    pub frames: Vec<NameId>,
}

/// How loud a mark is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A note.
    Info,
    /// Something the user should look at.
    Warning,
}

/// A note in the timeline: a checkpoint, an instrument that failed, a user's remark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// When, monotonic nanoseconds.
    pub time_ns: i64,
    /// How loud.
    pub severity: Severity,
    /// What.
    pub text: String,
}
