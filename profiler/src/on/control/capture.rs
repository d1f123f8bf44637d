//! One kernel capture, on the thread `dflash-kernels`.
//!
//! An iteration is captured whole or not at all: the tracer, which may take a second to begin, is started while the
//! lane works, and the first iteration that begins after it has begun is the first one that counts. Nothing is asked of
//! the lane for that but the two numbers that it keeps anyway.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dflash_timeline::RunDir;
use dflash_timeline::control::KernelWindow;
use dflash_timeline::record::{Kind, Severity};

use super::super::hub::Hub;
use super::kernels::{Job, Phase};
use super::lanes::LaneView;
use super::{kernels_file, mark};
use crate::KernelCapture;

/// How often the lane is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(1);
/// Iterations too short to be seen running, after which the lane is taken to train.
const UNSEEN: u64 = 64;

/// What the thread needs.
#[derive(Debug)]
pub(super) struct Capture {
    pub hub: Arc<Hub>,
    pub run: RunDir,
    pub rank: u32,
    pub attempt: u32,
    pub tracer: Arc<dyn KernelCapture>,
    pub lane: LaneView,
    pub job: Arc<Job>,
    pub iterations: u64,
    pub by: String,
    pub patience: Duration,
    /// Every lane: those without operators in the trace are named.
    pub lanes: Vec<String>,
}

impl Capture {
    /// Runs to the end; whatever fails ends this capture and nothing else.
    pub(super) fn run(&self) {
        let outcome = catch_unwind(AssertUnwindSafe(|| self.capture()))
            .unwrap_or_else(|_| Err("the tracer of kernels panicked; it may still run".to_owned()));
        if let Err(problem) = &outcome {
            self.mark(Severity::Warning, format!("kernel capture, {}: {problem}", self.by));
        }
        self.job.set(Phase::Ended(outcome));
    }

    fn capture(&self) -> Result<PathBuf, String> {
        self.wait_for_training()?;
        let lacks = self.tracer.start().map_err(|error| error.to_string())?;
        let mut window = self.begin(lacks);
        let file = kernels_file::unused(&self.run, &window);
        let (first, last) = (window.first, window.first + window.asked - 1);
        self.say_begin(&window, last);
        self.job.set(Phase::Begun { file: file.clone(), first, last });
        let cut_short = self.wait_for_end(last);
        window.end_ns = dflash_sys::monotonic_ns();
        window.end_unix_ns = dflash_sys::realtime_ns();
        window.last = (first..=last).rev().find(|number| self.lane.has_done(*number));
        self.job.set(Phase::Writing { file: file.clone() });
        let file = kernels_file::write(&*self.tracer, &file, &mut window, &self.lanes)?;
        self.say_end(&window, cut_short);
        Ok(file)
    }

    /// The tracer runs: from here on iterations count.
    fn begin(&self, lacks: Vec<String>) -> KernelWindow {
        let mut window = KernelWindow::default();
        window.begin_ns = dflash_sys::monotonic_ns();
        window.begin_unix_ns = dflash_sys::realtime_ns();
        // Read after the clock: the iteration with this number begins later still.
        window.first = self.lane.begun();
        window.asked = self.iterations;
        window.lane = self.lane.name().to_owned();
        (window.rank, window.attempt, window.lacks) = (self.rank, self.attempt, lacks);
        window
    }

    /// Until an iteration of training begins: warm-up is not what is asked for, and a lane that stands still would let
    /// the tracer gather for ever.
    fn wait_for_training(&self) -> Result<(), String> {
        let (lane, before, begin) = (self.lane.name(), self.lane.begun(), Instant::now());
        loop {
            let running = self.lane.running();
            let trains = running.is_some_and(|(number, kind)| number >= before && kind == Kind::Train);
            if trains || (running.is_none() && self.lane.begun() >= before + UNSEEN) {
                return Ok(());
            }
            if self.lane.has_ended() || self.job.is_hurried() {
                return Err(format!("{lane} ended before the capture could begin"));
            }
            if begin.elapsed() > self.patience {
                let seconds = self.patience.as_secs_f64();
                return Err(format!(
                    "no iteration of {lane} that trains began within {seconds} s; `dflash ctl stacks` says where it is"
                ));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// Until an iteration has ended; else why it is not waited for any more.
    fn wait_for_end(&self, last: u64) -> Option<String> {
        let (mut begun, mut moved) = (self.lane.begun(), Instant::now());
        loop {
            if self.lane.has_done(last) {
                return None;
            }
            if self.lane.has_ended() || self.job.is_hurried() {
                return Some(format!("{} ended", self.lane.name()));
            }
            let now = self.lane.begun();
            if now != begun {
                (begun, moved) = (now, Instant::now());
            } else if moved.elapsed() > self.patience {
                return Some(format!("no iteration ended within {} s", self.patience.as_secs_f64()));
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    fn say_begin(&self, window: &KernelWindow, last: u64) {
        let KernelWindow { lane, first, lacks, .. } = window;
        let lacks = if lacks.is_empty() { String::new() } else { format!("; it lacks {}", lacks.join(", ")) };
        let text = format!("kernel capture: begins on {lane}, iterations {first} to {last}, {}{lacks}", self.by);
        self.mark(Severity::Info, text);
    }

    fn say_end(&self, window: &KernelWindow, cut_short: Option<String>) {
        let KernelWindow { trace, lane, first, begin_ns, end_ns, begin_unix_ns, end_unix_ns, .. } = window;
        let what = match window.last {
            Some(last) => format!("iterations {first} to {last} of {lane}"),
            None => format!("no whole iteration of {lane}"),
        };
        let why = cut_short.as_ref().map(|why| format!(", cut short because {why}")).unwrap_or_default();
        let text = format!(
            "kernel capture: {trace} holds {what}{why}; {begin_ns} to {end_ns} ns of CLOCK_MONOTONIC, \
             {begin_unix_ns} to {end_unix_ns} ns of CLOCK_REALTIME"
        );
        self.mark(if cut_short.is_some() { Severity::Warning } else { Severity::Info }, text);
    }

    fn mark(&self, severity: Severity, text: String) {
        mark(&self.hub, severity, text);
    }
}
