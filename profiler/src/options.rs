//! What a profiler is told at its start, and what it answers.

use std::time::Duration;

use dflash_timeline::{RunDir, StreamOptions};

use crate::CpuOptions;

/// A kill shall cost 250 ms at most: some are left to wake up, to collect and to write.
const WRITE_EVERY: Duration = Duration::from_millis(225);

/// How much is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Level {
    /// Nothing.
    Off = 0,
    /// Iterations and their stages.
    #[default]
    Stages = 1,
    /// Also what lies below a stage: layers, steps of a backward pass.
    Layers = 2,
}

/// How a profiler records. [`Options::new`] has the defaults.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Where the recording goes.
    pub run: RunDir,
    /// Process of a multi-process run, from 0.
    pub rank: u32,
    /// Which start of the run this is, from 1.
    pub attempt: u32,
    /// How much is recorded at first; [`set_level`](crate::set_level) changes it.
    pub level: Level,
    /// Records that a lane may be ahead of the writer; more are dropped and counted.
    pub ring: usize,
    /// How the timeline lies on the disk: the size of its segments, how much of it is kept, how often it is synced.
    pub stream: StreamOptions,
    /// How often the writer collects and writes. A process that is killed loses what it recorded since, and while the
    /// writer worked on it.
    pub write_every: Duration,
    /// How often CPU time and memory of the process are sampled; `None`: never.
    pub sample_every: Option<Duration>,
    /// Which GPUs are sampled, and how often.
    pub nvml: crate::NvmlOptions,
    /// Whether the same user may look at the run and ask things of it over a unix socket; its path goes into run.json.
    pub control: bool,
    /// How CPU sampling works, once it is started.
    pub cpu: CpuOptions,
    /// How device times are taken.
    pub device: DeviceTiming,
    /// When iterations run without instrumentation, to measure what it costs.
    pub bare: Bare,
    /// Share of an iteration's time that instrumentation may cost. Where bare iterations show that it certainly costs
    /// more, the level is lowered, and a mark says so. `f64::INFINITY`: it may cost anything.
    pub max_overhead: f64,
}

/// How the device times of spans are taken.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DeviceTiming {
    /// How long after a span's end its device time may come. Then the span is written without, and counted as unresolved.
    /// An event that seems lost is given up after three quarters of it, so that those behind it are not lost as well; at
    /// once, where the stream has passed it.
    pub deadline: Duration,
    /// The same at the recording's end, where the program waits for it.
    pub finish_deadline: Duration,
    /// How often the collector looks at the events that are under way.
    pub poll_every: Duration,
    /// How often it compares the device's clock with the host's.
    pub anchor_every: Duration,
    /// Records of a lane that may wait for device times; with more, the first is written without, as at the deadline.
    pub waiting: usize,
    /// Spans that are shorter on the device, in the mean, are timed there in every k-th iteration only. Zero: all are.
    pub stride_below: Duration,
}

impl Default for DeviceTiming {
    /// 10 s, 1 s at the end; 20 ms; 2 s; 65,536 records; 50 µs.
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(10),
            finish_deadline: Duration::from_secs(1),
            poll_every: Duration::from_millis(20),
            anchor_every: Duration::from_secs(2),
            waiting: 1 << 16,
            stride_below: Duration::from_micros(50),
        }
    }
}

/// When a lane runs iterations bare, without instrumentation. They come in pairs with instrumented ones, in random
/// order; the two times of a pair tell what instrumentation costs. Only iterations of kind `Train` take part.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Bare {
    /// Pairs of each window; 0: no iteration is ever bare.
    pub pairs: u32,
    /// Iteration with which the first window begins.
    pub from: u64,
    /// Iterations from the begin of one window to that of the next.
    pub every: u64,
    /// Which of a pair comes first is drawn from this.
    pub seed: u64,
}

impl Default for Bare {
    /// 20 pairs every 2,000 iterations, from the 100th on: one iteration in a hundred is bare.
    fn default() -> Self {
        Self { pairs: 20, from: 100, every: 2_000, seed: 0 }
    }
}

impl Options {
    /// Stages, rank 0, attempt 1, 64 MB segments, a block each 225 ms, one sample a second.
    #[must_use]
    pub fn new(run: RunDir) -> Self {
        Self {
            run,
            rank: 0,
            attempt: 1,
            level: Level::default(),
            ring: 8192,
            stream: StreamOptions::default(),
            write_every: WRITE_EVERY,
            sample_every: Some(Duration::from_secs(1)),
            nvml: crate::NvmlOptions::default(),
            control: true,
            device: DeviceTiming::default(),
            bare: Bare::default(),
            max_overhead: 0.005,
            cpu: CpuOptions::default(),
        }
    }
}

/// What a lane spent on one stage since its stats were last taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// The stage, `total` (whole iterations) or `residue` (what no stage covers).
    pub name: &'static str,
    /// How often.
    pub count: u64,
    /// How long, in all.
    pub total: Duration,
}

impl Stat {
    /// Mean time of one, in milliseconds.
    #[must_use]
    pub fn mean_ms(&self) -> f64 {
        if self.count == 0 { 0.0 } else { self.total.as_secs_f64() * 1e3 / self.count as f64 }
    }
}

/// What became of the records of one lane: `emitted = written + dropped`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneAccount {
    /// The lane's name.
    pub lane: String,
    /// The lane's device.
    pub device: String,
    /// Records that its thread made.
    pub emitted: u64,
    /// Of those, in the stream.
    pub written: u64,
    /// Of those, lost: the ring was full, the disk failed, or the recording had ended.
    pub dropped: u64,
    /// Of the dropped, those made after the recording had ended.
    pub late: u64,
}
