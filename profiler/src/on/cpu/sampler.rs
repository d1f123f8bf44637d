//! The thread `dflash-cpu`: gives threads their timers, takes the samples, names their functions, hands them on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dflash_sys::sampling::{End, FRAMES, Label, Sample, Sampling};

use super::slots;
use super::symbols::Symbols;
use super::watched::Watched;
use crate::on::event::Stack;
use crate::on::hub::lock;
use crate::on::threads::{OwnThreads, Role};
use crate::{CpuOptions, CpuReport};

/// How often samples are taken, and how often threads are looked for.
const TAKE_EVERY: Duration = Duration::from_millis(20);
const LOOK_EVERY: Duration = Duration::from_millis(100);
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// Most that may be asked for: a walk takes some 10 microseconds.
pub(crate) const FASTEST_HZ: u32 = 10_000;

/// Where samples go.
pub(crate) struct Sink {
    /// Takes one; `false`: there is no room for it.
    pub take: Box<dyn FnMut(Stack) -> bool + Send>,
    /// Is told once a second what it came to so far.
    pub progress: Box<dyn FnMut(&CpuReport) + Send>,
}

/// Sampling that goes on.
#[derive(Debug)]
pub(crate) struct Running {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<CpuReport>,
}

struct Sampler {
    // First, so that its timers go before the handler does.
    watched: Watched,
    sampling: Sampling,
    symbols: Arc<Mutex<Symbols>>,
    options: CpuOptions,
    sink: Sink,
    report: CpuReport,
    begin: Instant,
    /// What the writer had no room for.
    refused: u64,
    handler_ns: u64,
}

impl Running {
    /// Begins to sample.
    pub(crate) fn start(
        hz: u32,
        options: CpuOptions,
        symbols: Arc<Mutex<Symbols>>,
        sink: Sink,
        threads: OwnThreads,
    ) -> Result<Self, String> {
        if !(1..=FASTEST_HZ).contains(&hz) {
            return Err(format!("{hz} samples a second: give 1 to {FASTEST_HZ}; 99 is a good choice"));
        }
        let sampling = Sampling::start(slots::label).map_err(|error| format!("CPU sampling cannot start: {error}"))?;
        let watched = Watched::new(hz, options.own_threads);
        let report = CpuReport { asked_hz: hz, ..CpuReport::default() };
        let begin = Instant::now();
        let sampler = Sampler { watched, sampling, symbols, options, sink, report, begin, refused: 0, handler_ns: 0 };
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = thread::Builder::new().name("dflash-cpu".into()).spawn(move || {
            let _present = threads.enter(Role::Sampler);
            sampler.run(&told)
        });
        let thread = thread.map_err(|error| format!("cannot start the thread dflash-cpu: {error}"))?;
        Ok(Self { stop, thread })
    }

    /// Ends it.
    pub(crate) fn stop(self) -> Result<CpuReport, String> {
        self.stop.store(true, Ordering::Release);
        self.thread.thread().unpark();
        self.thread.join().map_err(|_| "the thread dflash-cpu panicked; report this".to_owned())
    }
}

impl Sampler {
    fn run(mut self, stop: &AtomicBool) -> CpuReport {
        let (mut looked, mut told) = (None::<Instant>, Instant::now());
        while !stop.load(Ordering::Acquire) && !self.report.taken_over {
            if looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
                looked = Some(Instant::now());
                self.sampling.refresh();
                self.take();
                self.watched.look(&self.sampling);
                self.report.taken_over = self.sampling.taken_over();
            }
            self.take();
            if told.elapsed() >= PROGRESS_EVERY {
                told = Instant::now();
                self.account();
                (self.sink.progress)(&self.report);
            }
            thread::park_timeout(TAKE_EVERY);
        }
        // Once more, for what threads used since.
        self.watched.look(&self.sampling);
        self.watched.stop();
        while self.take() {}
        self.account();
        self.report
    }

    /// Takes some samples: not all, so that threads that never rest cannot keep this one here. Whether there were any.
    fn take(&mut self) -> bool {
        let mut taken = Vec::new();
        while taken.len() < 1024 && self.sampling.next(|sample| taken.push(sample.clone())) {}
        taken.iter().for_each(|sample| self.hand_on(sample));
        self.report.lost = self.sampling.lost() + self.refused;
        !taken.is_empty()
    }

    fn hand_on(&mut self, sample: &Sample) {
        self.handler_ns += u64::from(sample.cost_ns);
        self.watched.used(sample.tid, sample.cpu_ns);
        let mut symbols = lock(&self.symbols);
        let innermost = sample.frames().first().map(|address| symbols.place(*address, 0));
        if innermost.is_some_and(|place| place.is_in(&self.options.block)) {
            self.report.blocked += 1;
            return;
        }
        self.report.cut += u64::from(sample.end != End::Root);
        let stack = stack(sample, &mut symbols, self.watched.name(sample.tid));
        drop(symbols);
        let kept = (self.sink.take)(stack);
        *(if kept { &mut self.report.samples } else { &mut self.refused }) += 1;
    }

    /// Fills in the rest of the report.
    fn account(&mut self) {
        let counts = self.watched.counts();
        let report = &mut self.report;
        (report.threads, report.own_threads, report.unwatched) = (counts.sampled, counts.own, counts.unwatched);
        report.seconds = self.begin.elapsed().as_secs_f64();
        report.cpu_seconds = counts.cpu_ns as f64 / 1e9;
        report.handler_seconds = self.handler_ns as f64 / 1e9;
        let came = (report.samples + report.blocked) as f64;
        report.achieved_hz = if counts.cpu_ns > 0 { came / report.cpu_seconds } else { 0.0 };
    }
}

/// A sample with names in it, outermost first.
fn stack(sample: &Sample, symbols: &mut Symbols, thread: Arc<str>) -> Stack {
    let Label { lane, iteration, .. } = sample.label;
    let mut frames = names(sample, symbols);
    frames.reverse();
    Stack {
        time_ns: sample.time_ns,
        tid: sample.tid,
        thread,
        lane: slots::lane(lane),
        iteration: iteration.checked_sub(1),
        spans: sample.label.open().map(|(site, _)| site).collect(),
        frames,
    }
}

/// Functions of a stack, innermost first. A stack that lacks its outermost ones says so in their place.
pub(crate) fn names(sample: &Sample, symbols: &mut Symbols) -> Vec<Arc<str>> {
    let addresses = sample.frames().iter().enumerate();
    let mut frames: Vec<_> = addresses.map(|(depth, address)| symbols.place(*address, depth).function).collect();
    match sample.end {
        End::Root => {}
        End::Cut => frames.push(format!("[more than {FRAMES} functions]").into()),
        End::Lost => frames.push("[callers not found]".into()),
    }
    frames
}
