//! Kernel captures: one at a time, a job each. What runs on its thread stands in `capture.rs`.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use dflash_timeline::record::Severity;

use super::super::hub::{Hub, lock};
use super::super::level;
use super::super::threads::Role;
use super::capture::Capture;
use super::{Control, mark};
use crate::KernelCapture;

/// How long an iteration may take to begin or to end.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long the end of the recording waits for a trace to be written.
const LAST_TRACE: Duration = Duration::from_secs(60);
/// A trace of more is read by nothing.
const MOST: u64 = 10_000;

/// The tracer, and the capture that runs or ran last.
#[derive(Debug)]
pub(super) struct Kernels {
    tracer: Mutex<Option<Arc<dyn KernelCapture>>>,
    job: Mutex<Option<Arc<Job>>>,
    pub(super) patience: Mutex<Duration>,
}

impl Default for Kernels {
    fn default() -> Self {
        Self { tracer: Mutex::default(), job: Mutex::default(), patience: Mutex::new(PATIENCE) }
    }
}

/// How far a capture is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// No iteration has begun yet.
    Waiting,
    /// The tracer runs.
    Begun {
        /// What will be written.
        file: PathBuf,
        /// First iteration.
        first: u64,
        /// Last iteration.
        last: u64,
    },
    /// The tracer stops and writes.
    Writing {
        /// What is being written.
        file: PathBuf,
    },
    /// It is over.
    Ended(Result<PathBuf, String>),
}

/// One capture, as those see it who wait for it.
#[derive(Debug)]
pub(super) struct Job {
    lane: String,
    phase: Mutex<Phase>,
    changed: Condvar,
    /// The recording ends: write what there is.
    hurry: AtomicBool,
}

impl Job {
    fn new(lane: &str) -> Arc<Self> {
        let (lane, phase) = (lane.to_owned(), Mutex::new(Phase::Waiting));
        Arc::new(Self { lane, phase, changed: Condvar::new(), hurry: AtomicBool::new(false) })
    }

    pub(super) fn set(&self, phase: Phase) {
        *lock(&self.phase) = phase;
        self.changed.notify_all();
    }

    pub(super) fn is_hurried(&self) -> bool {
        self.hurry.load(Ordering::Relaxed)
    }

    /// Where it is after at most so long; at once when it has ended.
    pub(super) fn wait(&self, most: Duration) -> Phase {
        self.wait_while(most, |phase| !matches!(phase, Phase::Ended(_)))
    }

    /// Where it is after at most so long; at once when the tracer has begun.
    pub(super) fn wait_for_begin(&self, most: Duration) -> Phase {
        self.wait_while(most, |phase| *phase == Phase::Waiting)
    }

    /// Waits until the tracer has begun. Returns the file that will be written.
    pub(super) fn begun(&self) -> Result<PathBuf, String> {
        loop {
            match self.wait_for_begin(Duration::from_secs(1)) {
                Phase::Waiting => {}
                Phase::Begun { file, .. } | Phase::Writing { file } => return Ok(file),
                Phase::Ended(outcome) => return outcome,
            }
        }
    }

    fn wait_while(&self, most: Duration, pending: impl Fn(&Phase) -> bool) -> Phase {
        let waited = self.changed.wait_timeout_while(lock(&self.phase), most, |phase| pending(phase));
        waited.unwrap_or_else(|e| e.into_inner()).0.clone()
    }

    /// A phase in words.
    pub(super) fn says(&self, phase: &Phase) -> String {
        let lane = &self.lane;
        match phase {
            Phase::Waiting => format!("waiting for the next iteration of {lane}"),
            Phase::Begun { first, last, .. } => format!("capturing iterations {first} to {last} of {lane}"),
            Phase::Writing { file } => format!("{} is being written", file.display()),
            Phase::Ended(Ok(file)) => format!("{} is written", file.display()),
            Phase::Ended(Err(problem)) => problem.clone(),
        }
    }
}

impl Kernels {
    /// What the capture that runs is at.
    pub(super) fn running(&self) -> Option<String> {
        let job = lock(&self.job).clone()?;
        let phase = lock(&job.phase).clone();
        (!matches!(phase, Phase::Ended(_))).then(|| job.says(&phase))
    }

    /// Brings a capture to its end: it writes what there is.
    pub(super) fn close(&self, hub: &Hub) {
        let Some(job) = lock(&self.job).clone() else { return };
        job.hurry.store(true, Ordering::Relaxed);
        if !matches!(job.wait(LAST_TRACE), Phase::Ended(_)) {
            let text = format!("kernel capture: its trace was not written within {} s", LAST_TRACE.as_secs());
            mark(hub, Severity::Warning, text);
        }
    }
}

impl Control {
    pub(super) fn register(&self, tracer: Arc<dyn KernelCapture>) {
        *lock(&self.kernels.tracer) = Some(tracer);
    }

    /// Starts a capture on a thread of its own.
    pub(super) fn start_kernels(&self, iterations: u64, by: &str) -> Result<Arc<Job>, String> {
        if !(1..=MOST).contains(&iterations) {
            return Err(format!("{iterations} iterations cannot be captured; take 1 to {MOST}"));
        }
        let tracer = lock(&self.kernels.tracer).clone();
        let tracer = tracer.ok_or("this training has no tracer of kernels")?;
        if level::current() == 0 {
            let text = "the level is off: no iteration is recorded that kernels could be joined to; raise it first";
            return Err(text.to_owned());
        }
        let lane = self.lanes.to_count().ok_or("there is no lane yet whose iterations could be counted")?;
        // Held to the end, so that of two who ask at once one is refused.
        let mut job = lock(&self.kernels.job);
        if let Some(running) = job.as_ref().filter(|job| !matches!(*lock(&job.phase), Phase::Ended(_))) {
            let phase = lock(&running.phase).clone();
            return Err(format!("a kernel capture runs: {}; one at a time", running.says(&phase)));
        }
        if self.is_closing() {
            return Err("the recording ends".to_owned());
        }
        let new = Job::new(lane.name());
        let capture = Capture {
            hub: Arc::clone(&self.hub),
            run: self.run.clone(),
            rank: self.rank,
            attempt: self.attempt,
            tracer,
            lane,
            job: Arc::clone(&new),
            iterations,
            by: by.to_owned(),
            patience: *lock(&self.kernels.patience),
            lanes: self.lanes.names(),
        };
        let thread = thread::Builder::new().name("dflash-kernels".into());
        let run = move || {
            let _present = capture.hub.threads.enter(Role::Kernels);
            capture.run();
        };
        thread.spawn(run).map_err(|error| format!("the system gives no thread: {error}"))?;
        *job = Some(Arc::clone(&new));
        Ok(new)
    }
}

#[cfg(test)]
mod tests;
