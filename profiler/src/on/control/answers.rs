//! What each request does. Every change leaves a mark in the timeline that says who asked for it.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use dflash_timeline::control::{Answer, Ask, Request};
use dflash_timeline::record::Severity;

use super::super::cpu::Which;
use super::super::level;
use super::Control;
use super::by::by;
use super::kernels::Phase;
use super::reply::Reply;
use super::requests::Progress;
use super::sampled;
use super::status::level_name;
use crate::Level;

/// How often a long answer looks whether it is done.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Samples a second that may be asked for.
const HERTZ: std::ops::RangeInclusive<u32> = 1..=1000;
/// Longest sampling that one request may ask for, seconds.
const LONGEST_CPU: f64 = 3600.0;
/// How long the training may take to look for a request.
const LOOKS_WITHIN: Duration = Duration::from_secs(300);

/// Answers a request. An error means that the client is gone.
pub(super) fn answer(control: &Control, request: &Request, reply: &mut Reply<'_>) -> io::Result<()> {
    let by = by(&request.by);
    let done = match &request.ask {
        Ask::Status => Ok(Answer::Status(Box::new(control.status()))),
        Ask::Level { level } => control.change_level(level, &by),
        Ask::Mark { text, warning } => control.note(text, *warning),
        Ask::CpuStart { hz } => control.cpu_start(*hz, &by).map(|(_, text)| Answer::Done(text)),
        Ask::CpuStop => control.cpu_stop(Which::Samples, &by),
        Ask::Cpu { seconds, hz } => control.cpu_for(*seconds, *hz, &by, reply)?,
        Ask::Stacks => control.profiler().and_then(|profiler| profiler.stacks()).map(sampled::stacks),
        Ask::Kernels { iterations, wait } => control.kernels(*iterations, *wait, &by, reply)?,
        Ask::Checkpoint { wait } => control.checkpoint(*wait, &by, reply)?,
        Ask::Stop => control.stop(&by),
    };
    reply.send(&done.unwrap_or_else(Answer::Error))
}

type Done = Result<Answer, String>;

impl Control {
    fn change_level(&self, name: &str, by: &str) -> Done {
        let levels = [Level::Off, Level::Stages, Level::Layers];
        let wanted = levels.into_iter().find(|level| level_name(*level) == name);
        let wanted = wanted.ok_or_else(|| format!("there is no level {name:?}; take off, stages or layers"))?;
        let before = level::level();
        if before == wanted {
            return Ok(Answer::Done(format!("level: {name} already")));
        }
        level::set_level(wanted);
        let text = format!("level: {} -> {name}, {by}", level_name(before));
        self.mark(Severity::Info, text.clone());
        Ok(Answer::Done(text))
    }

    fn note(&self, text: &str, warning: bool) -> Done {
        if text.trim().is_empty() {
            return Err("a mark needs a text".to_owned());
        }
        self.mark(if warning { Severity::Warning } else { Severity::Info }, text.to_owned());
        Ok(Answer::Done("marked".to_owned()))
    }

    /// Number of the sampling that begins, and what is said of it.
    fn cpu_start(&self, hz: u32, by: &str) -> Result<(u64, String), String> {
        if !HERTZ.contains(&hz) {
            return Err(format!("{hz} samples a second are not possible; take 1 to 1000"));
        }
        let number = self.profiler()?.cpu_start_numbered(hz)?;
        let text = format!("cpu: sampling begins, {hz} times a second, {by}");
        self.mark(Severity::Info, text.clone());
        Ok((number, text))
    }

    fn cpu_stop(&self, which: Which, by: &str) -> Done {
        let report = self.profiler()?.cpu_stop_which(which)?;
        let (samples, lost) = (report.samples, report.lost);
        self.mark(Severity::Info, format!("cpu: sampling ended, {samples} samples, {lost} lost, {by}"));
        Ok(sampled::report(&report))
    }

    fn cpu_for(&self, seconds: f64, hz: u32, by: &str, reply: &mut Reply<'_>) -> io::Result<Done> {
        if !(seconds > 0.0 && seconds <= LONGEST_CPU) {
            return Ok(Err(format!("{seconds} seconds are not possible; take up to {LONGEST_CPU}")));
        }
        let number = match self.cpu_start(hz, by) {
            Ok((number, _)) => number,
            Err(problem) => return Ok(Err(problem)),
        };
        let runs = || self.profiler().is_ok_and(|profiler| profiler.cpu_runs(number));
        let (begin, long) = (Instant::now(), Duration::from_secs_f64(seconds));
        let mut present = Ok(());
        while present.is_ok() && begin.elapsed() < long && !self.is_closing() && runs() {
            present = reply.progress(|| format!("sampling, {:.0} of {seconds} s", begin.elapsed().as_secs_f64()));
            thread::sleep(LOOK_EVERY.min(long.saturating_sub(begin.elapsed())));
        }
        // Also when the client has gone: nobody else would end it. But only this one: somebody may have stopped it and begun
        // another.
        let done = self.cpu_stop(Which::Numbered(number), by);
        present.map(|()| done)
    }

    fn kernels(&self, iterations: u64, wait: bool, by: &str, reply: &mut Reply<'_>) -> io::Result<Done> {
        let job = match self.start_kernels(iterations, by) {
            Ok(job) => job,
            Err(problem) => return Ok(Err(problem)),
        };
        // If the client goes meanwhile, the capture goes on: a mark says where its file lies.
        loop {
            match if wait { job.wait(LOOK_EVERY) } else { job.wait_for_begin(LOOK_EVERY) } {
                Phase::Ended(outcome) => return Ok(outcome.map(Answer::File)),
                Phase::Begun { file, .. } | Phase::Writing { file } if !wait => return Ok(Ok(Answer::File(file))),
                phase => reply.progress(|| job.says(&phase))?,
            }
        }
    }

    fn checkpoint(&self, wait: bool, by: &str, reply: &mut Reply<'_>) -> io::Result<Done> {
        if let Err(problem) = self.someone_looks() {
            return Ok(Err(problem));
        }
        let ticket = self.requests.ask_checkpoint();
        self.mark(Severity::Info, format!("checkpoint: asked for, {by}"));
        if !wait {
            return Ok(Ok(Answer::Done("a checkpoint is written after the step that runs".to_owned())));
        }
        let begin = Instant::now();
        loop {
            match self.requests.wait(ticket, LOOK_EVERY) {
                Progress::Ended(outcome) => return Ok(outcome.map(Answer::File)),
                Progress::Taken => reply.progress(|| "the checkpoint is being written".to_owned())?,
                Progress::Asked if begin.elapsed() > LOOKS_WITHIN => {
                    let seconds = LOOKS_WITHIN.as_secs();
                    return Ok(Err(format!("no step has ended within {seconds} s; the checkpoint is still wanted")));
                }
                Progress::Asked => reply.progress(|| "waiting for the step that runs to end".to_owned())?,
            }
        }
    }

    fn stop(&self, by: &str) -> Done {
        self.someone_looks()?;
        self.requests.ask_stop();
        self.mark(Severity::Info, format!("stop: asked for, {by}"));
        Ok(Answer::Done("the training ends after the step that runs".to_owned()))
    }

    fn someone_looks(&self) -> Result<(), String> {
        if self.requests.are_taken() { Ok(()) } else { Err("this training takes no such requests".to_owned()) }
    }
}
