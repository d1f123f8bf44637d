//! Where the numbers come from: a run's directory, looked at again and again.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io};

use dflash_reports::timeline::{self, Manifest, MetricsRow, RunDir, State as RunState, Tail, Timeline};

use crate::Result;
use crate::state::{Input, Model, WindowLength};

/// A live run is kept in memory this far back: it bounds what a run of many days costs.
const KEEP_NS: u64 = 1800 * 1_000_000_000;

/// A run that is being looked at.
pub struct Source {
    run: RunDir,
    recording: Recording,
    manifest: Manifest,
    state: RunState,
    metrics: Vec<MetricsRow>,
    metrics_stamp: Option<(u64, SystemTime)>,
    problems: Vec<String>,
    host: String,
}

/// A finished run is read once and whole; a running one is followed.
enum Recording {
    Whole(Box<Timeline>),
    Live(Box<Tail>),
}

impl Recording {
    fn open(run: &RunDir, state: RunState) -> Result<Self> {
        Ok(if state == RunState::Running {
            Self::Live(Box::new(Tail::open(run)?.with_window(KEEP_NS)))
        } else {
            Self::Whole(Box::new(timeline::read(run)?))
        })
    }
}

impl Source {
    /// Opens a run and takes the first look.
    ///
    /// # Errors
    /// When run.json or the timeline's directory cannot be read.
    pub fn open(run: RunDir) -> Result<Self> {
        let (manifest, state) = (run.manifest()?, run.state()?);
        let recording = Recording::open(&run, state)?;
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
        let (metrics, metrics_stamp, problems) = (Vec::new(), None, Vec::new());
        let mut source = Self { run, recording, manifest, state, metrics, metrics_stamp, problems, host };
        source.poll();
        Ok(source)
    }

    /// Whether the run may still write.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.state == RunState::Running
    }

    /// Looks again. What cannot be read keeps its last value and becomes a line of the screen: a run that is moved or
    /// removed while it is watched must not end the view.
    pub fn poll(&mut self) {
        self.problems.clear();
        let looked = self.look();
        self.note(looked);
        let read = self.read_metrics();
        self.note(read);
    }

    fn note(&mut self, looked: Result<()>) {
        if let Err(error) = looked {
            self.problems.push(error.to_string());
        }
    }

    fn look(&mut self) -> Result<()> {
        if let Recording::Live(tail) = &mut self.recording {
            tail.poll()?;
        }
        let before = self.state;
        (self.manifest, self.state) = (self.run.manifest()?, self.run.state()?);
        // A finished run that is resumed goes on in the same directory.
        if self.state == RunState::Running && before != RunState::Running {
            self.recording = Recording::open(&self.run, self.state)?;
            return self.look();
        }
        Ok(())
    }

    /// The numbers of the last look, over `window`.
    #[must_use]
    pub fn model(&self, window: WindowLength) -> Model {
        let input = Input {
            name: &self.run.name(),
            manifest: &self.manifest,
            state: self.state,
            here: self.manifest.host == self.host,
            timeline: match &self.recording {
                Recording::Whole(timeline) => timeline,
                Recording::Live(tail) => tail.timeline(),
            },
            metrics: &self.metrics,
            problems: &self.problems,
            now_unix_ns: now_unix_ns(),
        };
        Model::new(&input, window)
    }

    /// Reads metrics.csv when it has changed.
    fn read_metrics(&mut self) -> Result<()> {
        let path = self.run.metrics_csv();
        let Some(stamp) = stamp(&path).filter(|stamp| self.metrics_stamp != Some(*stamp)) else { return Ok(()) };
        self.metrics = timeline::read_metrics(&path)?;
        self.metrics_stamp = Some(stamp);
        Ok(())
    }
}

/// Length and time of a file; `None` if there is none (yet).
fn stamp(path: &PathBuf) -> Option<(u64, SystemTime)> {
    let read = || -> io::Result<_> {
        let metadata = fs::metadata(path)?;
        Ok((metadata.len(), metadata.modified()?))
    };
    read().ok()
}

fn now_unix_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
