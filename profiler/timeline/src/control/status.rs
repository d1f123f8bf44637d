//! What a run says about itself over its control socket.

use serde::{Deserialize, Serialize};

use crate::record::{Kind, Totals};

/// Where a run stands, in the words of its own process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The process.
    pub pid: u32,
    /// The run's directory.
    pub run: String,
    /// Which process of the run.
    pub rank: u32,
    /// Which start of the run, from 1.
    pub attempt: u32,
    /// Nanoseconds since the recording began.
    pub age_ns: u64,
    /// `off`, `stages` or `layers`.
    pub level: String,
    /// Those that have not ended.
    pub lanes: Vec<LaneStatus>,
    /// What became of what was recorded, up to the last block.
    pub totals: Totals,
    /// Why the recording stopped, if it did; rank 0 tells it of the others, too.
    pub trouble: Option<String>,
    /// CPU samples a second and thread; `None`: none are taken.
    pub cpu_hz: Option<u32>,
    /// What the kernel capture that runs waits for; `None`: none runs.
    pub kernels: Option<String>,
    /// Whether the training looks for requests to write a checkpoint and to stop.
    pub takes_requests: bool,
    /// What the profiler costs.
    pub cost: Cost,
}

/// A lane that works.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LaneStatus {
    /// `target:0`, ….
    pub name: String,
    /// `cuda:0`, ….
    pub device: String,
    /// Iterations begun so far, the one that runs among them.
    pub begun: u64,
    /// Number of the iteration that runs and is recorded.
    pub iteration: Option<u64>,
    /// What kind that one began as.
    pub kind: Option<Kind>,
    /// Open spans, outermost first.
    pub spans: Vec<SpanAge>,
    /// Records made by its thread.
    pub emitted: u64,
    /// Of those, lost.
    pub dropped: u64,
}

/// An open span.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanAge {
    /// Its name.
    pub name: String,
    /// Nanoseconds since it began.
    pub age_ns: u64,
}

/// What the profiler itself has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Cost {
    /// CPU time of the profiler's threads, nanoseconds.
    pub cpu_ns: u64,
    /// CPU time of the whole process, nanoseconds.
    pub process_cpu_ns: u64,
    /// Bytes written into the timeline.
    pub bytes: u64,
}

/// What became of sampling CPU time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuReport {
    /// Samples a second and thread that were asked for.
    pub asked_hz: u32,
    /// And that came.
    pub achieved_hz: f64,
    /// Samples taken.
    pub samples: u64,
    /// Samples lost.
    pub lost: u64,
    /// Threads sampled.
    pub threads: u64,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// All of it in words, with what was left out.
    #[serde(default)]
    pub text: String,
}

/// What one thread does at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadStack {
    /// The thread's name.
    pub name: String,
    /// Its number in its system.
    pub tid: u32,
    /// What the kernel says: `running`, `sleeping`, `waiting for a device`, ….
    pub state: String,
    /// The lane that it works for, itself or on another thread's behalf.
    pub lane: Option<String>,
    /// The lane's iteration.
    pub iteration: Option<u64>,
    /// Open spans, outermost first.
    pub spans: Vec<SpanAge>,
    /// Functions, innermost first; empty if the thread did not answer.
    pub frames: Vec<String>,
    /// Why it did not answer, or what is missing of its stack.
    pub note: Option<String>,
}
