//! A run's directory, looked at again and again.

mod asking;
mod back;

use std::path::Path;
use std::{fs, io};

use dflash_reports::timeline::{self, Manifest, RunDir, State as RunState, Tail, Timeline};

use self::asking::Asking;
use super::keep::Keep;
use super::metrics::Metrics;
use super::past::{Past, Reading, Stretch};
use super::{hostname, now_unix_ns};
use crate::Result;
use crate::state::{Input, Look, Model, extent};

/// A finished run with more bytes of timeline than this is not read whole: its last part is, and others when they are
/// looked at.
const WHOLE: u64 = 64 << 20;

/// A run that is being looked at.
pub struct RunSource {
    run: RunDir,
    name: String,
    recording: Recording,
    manifest: Manifest,
    state: RunState,
    metrics: Metrics,
    problems: Vec<String>,
    host: String,
    count: usize,
    past: Option<Past>,
    reading: Option<Reading>,
    asking: Asking,
    /// What could not be read is not tried again while it is looked at.
    failed: Option<Stretch>,
}

/// A finished run is read once and whole; a running one, and one that is too long, is followed.
enum Recording {
    Whole(Box<Timeline>),
    Followed(Box<Tail>, Keep),
}

impl Recording {
    fn open(run: &RunDir, state: RunState, count: usize) -> Result<Self> {
        if state != RunState::Running && bytes(&run.timeline_dir()) <= WHOLE / count as u64 {
            return Ok(Self::Whole(Box::new(timeline::read(run)?)));
        }
        Ok(Self::Followed(Box::new(Tail::open(run)?), Keep::one_of(count)))
    }

    fn timeline(&self) -> &Timeline {
        match self {
            Self::Whole(timeline) => timeline,
            Self::Followed(tail, _) => tail.timeline(),
        }
    }

    /// Takes what has come, and forgets what is too much.
    fn poll(&mut self) -> Result<()> {
        if let Self::Followed(tail, keep) = self {
            tail.poll_keeping(|timeline| {
                keep.shorten(timeline);
                keep.nanoseconds()
            })?;
        }
        Ok(())
    }
}

/// Bytes of a timeline's segments.
fn bytes(directory: &Path) -> u64 {
    let length =
        |entry: io::Result<fs::DirEntry>| entry.and_then(|entry| entry.metadata()).map_or(0, |data| data.len());
    fs::read_dir(directory).map_or(0, |entries| entries.map(length).sum())
}

impl RunSource {
    /// Opens a run and takes the first look.
    ///
    /// # Errors
    /// When run.json or the timeline's directory cannot be read.
    pub fn open(run: RunDir) -> Result<Self> {
        Self::open_as_one_of(run, 1)
    }

    /// Opens a run that is one of so many: what one of them may keep in memory is the less.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_as_one_of(run: RunDir, count: usize) -> Result<Self> {
        let (manifest, state) = (run.manifest()?, run.state()?);
        let recording = Recording::open(&run, state, count)?;
        let (name, host) = (run.name(), hostname());
        let (metrics, problems) = (Metrics::of(run.metrics_csv()), Vec::new());
        let (past, reading, failed, asking) = (None, None, None, Asking::default());
        let mut source = Self {
            run,
            name,
            recording,
            manifest,
            state,
            metrics,
            problems,
            host,
            count,
            past,
            reading,
            asking,
            failed,
        };
        source.poll();
        Ok(source)
    }

    /// Whether the run may still write.
    #[must_use]
    pub fn is_live(&self) -> bool {
        self.state == RunState::Running
    }

    /// Where it lies.
    #[must_use]
    pub fn run(&self) -> &RunDir {
        &self.run
    }

    /// Looks again. What cannot be read keeps its last value and becomes a line of the screen: a run that is moved or
    /// removed while it is watched must not end the view. Says whether the numbers may have changed: of a run that goes on
    /// its age does, of one that is over nothing.
    pub fn poll(&mut self) -> bool {
        let before = (self.manifest.clone(), self.state, self.metrics.logged(), std::mem::take(&mut self.problems));
        let looked = self.look();
        self.note(looked);
        let read = self.metrics.poll();
        self.note(read);
        let (manifest, state, logged, problems) = before;
        let same = (&manifest, state, logged) == (&self.manifest, self.state, self.metrics.logged());
        self.is_live() || !same || problems != self.problems
    }

    fn note(&mut self, looked: Result<()>) {
        if let Err(error) = looked {
            self.problems.push(error.to_string());
        }
    }

    fn look(&mut self) -> Result<()> {
        self.recording.poll()?;
        let before = self.state;
        (self.manifest, self.state) = (self.run.manifest()?, self.run.state()?);
        // A finished run that is resumed goes on in the same directory.
        if self.state == RunState::Running && before != RunState::Running {
            self.recording = Recording::open(&self.run, self.state, self.count)?;
            return self.look();
        }
        self.manifest.trouble = dflash_reports::noted_trouble(&self.run, &self.manifest);
        if self.manifest.trouble.is_none() {
            self.manifest.trouble = self.asking.poll(&self.run, &self.manifest, self.state);
        }
        Ok(())
    }

    /// First and last moment that can be looked at: what is not in memory can be read.
    #[must_use]
    pub fn extent(&self) -> Option<(i64, i64)> {
        let timeline = self.timeline();
        let (first, last) = extent(timeline)?;
        let begin = match &self.recording {
            // The first block of the attempt dates it, and is always read.
            Recording::Followed(..) => timeline.anchors.first().map_or(first, |anchor| anchor.monotonic_ns),
            Recording::Whole(_) => first,
        };
        Some((begin.max(timeline.detail_from_ns.unwrap_or(i64::MIN)).min(first), last))
    }

    /// What was read of its timeline.
    #[must_use]
    pub fn timeline(&self) -> &Timeline {
        self.recording.timeline()
    }

    /// Its run.json.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Where it stands.
    #[must_use]
    pub fn state(&self) -> RunState {
        self.state
    }

    /// Whether it runs on this machine.
    #[must_use]
    pub fn is_here(&self) -> bool {
        self.manifest.host == self.host
    }

    /// Its metrics.csv.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// What could not be read at the last look.
    #[must_use]
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Its processes.
    #[must_use]
    pub fn processes(&self) -> Vec<(RunDir, u32)> {
        let mut ranks: Vec<u32> = self.timeline().lanes.iter().map(|lane| lane.rank).chain([0]).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks.into_iter().map(|rank| (self.run.clone(), rank)).collect()
    }

    /// The numbers of the last look.
    #[must_use]
    pub fn model(&self, look: &Look) -> Model {
        let input = Input {
            name: &self.name,
            manifest: &self.manifest,
            state: self.state,
            here: self.is_here(),
            timeline: self.past.as_ref().map_or(self.timeline(), Past::timeline),
            extent_ns: self.extent(),
            metrics: self.metrics.rows(),
            logged: self.metrics.logged(),
            problems: &self.problems,
            now_unix_ns: now_unix_ns(),
        };
        Model::new(&input, look)
    }
}

#[cfg(test)]
mod tests;
