//! What a profiler is told at its start, and what it answers.

use std::time::Duration;

use dflash_timeline::RunDir;

use crate::CpuOptions;

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
    /// Bytes after which a segment of the timeline ends and the next begins.
    pub segment_bytes: u64,
    /// How often the writer collects and writes.
    pub write_every: Duration,
    /// How often it samples CPU time and memory of the process; `None`: never.
    pub sample_every: Option<Duration>,
    /// How CPU sampling works, once it is started.
    pub cpu: CpuOptions,
}

impl Options {
    /// Stages, rank 0, attempt 1, 64 MB segments, four blocks a second, one sample a second.
    #[must_use]
    pub fn new(run: RunDir) -> Self {
        Self {
            run,
            rank: 0,
            attempt: 1,
            level: Level::default(),
            ring: 8192,
            segment_bytes: 64 << 20,
            write_every: Duration::from_millis(250),
            sample_every: Some(Duration::from_secs(1)),
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
