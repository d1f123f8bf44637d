//! CPU sampling as a profiler's user sees it.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use dflash_timeline::record::Severity;

use super::pprof::Profile;
use super::sampler::{Running, Sink};
use super::stacks;
use super::symbols::Symbols;
use crate::on::event::Remark;
use crate::on::hub::{Hub, lock};
use crate::on::profiler::Profiler;
use crate::on::threads::OwnThreads;
use crate::{CpuOptions, CpuReport, ThreadStack};

/// A profiler's sampling.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    pub options: CpuOptions,
    running: Mutex<Option<Sampled>>,
    /// Samplings begun so far.
    begun: AtomicU64,
    symbols: Arc<Mutex<Symbols>>,
}

#[derive(Debug)]
struct Sampled {
    /// Tells it from those before and after it.
    number: u64,
    hz: u32,
    running: Running,
    /// `None`: samples go into the timeline.
    profile: Gathering,
}

/// What is to be stopped.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Which {
    /// Samples into the timeline, whoever began it.
    Samples,
    /// That one and no other: somebody may have stopped it, and begun another, meanwhile.
    Numbered(u64),
    /// A profile.
    Profile,
}

/// A profile in the making, if that is what samples are for.
type Gathering = Option<Arc<Mutex<Profile>>>;

impl Cpu {
    pub(crate) fn new(options: CpuOptions) -> Self {
        Self { options, ..Self::default() }
    }

    fn start(&self, hz: u32, sink: Sink, profile: Gathering, threads: &OwnThreads) -> Result<u64, String> {
        let mut running = lock(&self.running);
        if let Some(running) = &*running {
            let what = if running.profile.is_some() { "a pprof profile is being taken" } else { "CPU sampling runs" };
            return Err(format!("{what} already; stop it first, since only one of the two can run at once"));
        }
        let started = Running::start(hz, self.options.clone(), Arc::clone(&self.symbols), sink, threads.clone())?;
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        *running = Some(Sampled { number, hz, running: started, profile });
        Ok(number)
    }

    fn stop(&self, which: Which) -> Result<(CpuReport, Gathering), String> {
        let mut running = lock(&self.running);
        let wanted = |running: &mut Sampled| match which {
            Which::Samples => running.profile.is_none(),
            Which::Numbered(number) => running.number == number,
            Which::Profile => running.profile.is_some(),
        };
        match running.take_if(wanted) {
            Some(sampled) => Ok((sampled.running.stop()?, sampled.profile)),
            None => Err(match which {
                Which::Samples => "CPU sampling does not run",
                Which::Numbered(_) => "somebody else has stopped this CPU sampling before its time",
                Which::Profile => "no pprof profile is being taken",
            }
            .to_owned()),
        }
    }

    /// Whether this sampling goes on.
    pub(crate) fn runs(&self, number: u64) -> bool {
        lock(&self.running).as_ref().is_some_and(|running| running.number == number)
    }

    /// Samples a second of CPU time, while they are taken.
    pub(crate) fn hz(&self) -> Option<u32> {
        lock(&self.running).as_ref().map(|sampled| sampled.hz)
    }

    /// Ends what runs, and says in the timeline what it came to.
    fn stop_into_timeline(&self, which: Which, hub: &Hub) -> Result<CpuReport, String> {
        let (report, _) = self.stop(which)?;
        let severity = if report.lost > 0 || report.taken_over { Severity::Warning } else { Severity::Info };
        hub.remark(Remark::Mark { severity, at: hub.clock.ticks(), text: report.to_string() });
        Ok(report)
    }

    /// The recording ends: so does the sampling, and a profile that nobody asked for is lost.
    pub(crate) fn finish(&self, hub: &Hub) {
        let _ = self.stop_into_timeline(Which::Samples, hub);
        let _ = self.stop(Which::Profile);
    }
}

impl Profiler {
    /// Begins to sample the CPU time of all threads, `hz` times in a second of each one's (99 is a good choice). Samples
    /// go into the timeline with the lane and the spans that were open when they hit.
    ///
    /// # Errors
    /// In words: it runs already, or the system does not let it.
    pub fn cpu_start(&self, hz: u32) -> Result<(), String> {
        self.cpu_start_numbered(hz).map(drop)
    }

    /// The same. Returns the sampling's number.
    pub(crate) fn cpu_start_numbered(&self, hz: u32) -> Result<u64, String> {
        let inner = self.inner()?;
        let hub = Arc::clone(&inner.hub);
        let (to_tell, rate) = (Arc::clone(&hub), hub.counter("profiler.sampling.rate", "Hz"));
        let lost = hub.counter("profiler.sampling.lost", "samples");
        let take = move |stack| hub.remark(Remark::Stack(Box::new(stack)));
        let progress = move |report: &CpuReport| {
            for (counter, value) in [(rate, report.achieved_hz), (lost, report.lost as f64)] {
                to_tell.remark(Remark::Sample { counter, at: to_tell.clock.ticks(), value });
            }
        };
        let sink = Sink { take: Box::new(take), progress: Box::new(progress) };
        inner.cpu.start(hz, sink, None, &inner.hub.threads)
    }

    /// Ends it. The report goes into the timeline, too.
    ///
    /// # Errors
    /// In words: it does not run.
    pub fn cpu_stop(&self) -> Result<CpuReport, String> {
        self.cpu_stop_which(Which::Samples)
    }

    pub(crate) fn cpu_stop_which(&self, which: Which) -> Result<CpuReport, String> {
        let inner = self.inner()?;
        inner.cpu.stop_into_timeline(which, &inner.hub)
    }

    pub(crate) fn cpu_runs(&self, number: u64) -> bool {
        self.inner().is_ok_and(|inner| inner.cpu.runs(number))
    }

    /// Begins to take a plain profile, in which equal stacks are merged. Not while [`cpu_start`](Self::cpu_start)'s
    /// sampling runs: a thread has one timer.
    ///
    /// # Errors
    /// In words: one of the two runs already, or the system does not let it.
    pub fn pprof_start(&self, hz: u32) -> Result<(), String> {
        let profile = Arc::new(Mutex::new(Profile::new(hz)));
        let gathers = Arc::clone(&profile);
        let take = move |stack| lock(&gathers).add(&stack);
        let inner = self.inner()?;
        let sink = Sink { take: Box::new(take), progress: Box::new(|_| ()) };
        inner.cpu.start(hz, sink, Some(profile), &inner.hub.threads).map(drop)
    }

    /// Ends it, and writes the profile in pprof's format to `file`, which must not exist.
    ///
    /// # Errors
    /// In words: none is being taken, or the file cannot be written; the profile is lost then.
    pub fn pprof_stop(&self, file: &Path) -> Result<CpuReport, String> {
        let (report, profile) = self.inner()?.cpu.stop(Which::Profile)?;
        if let Some(profile) = profile {
            let bytes = lock(&profile).encode(report.seconds);
            let written = File::create_new(file).and_then(|mut file| file.write_all(&bytes));
            written.map_err(|error| format!("{}: cannot write the profile: {error}", file.display()))?;
        }
        Ok(report)
    }

    /// What every thread of the process does now: its lane's open spans and how long they have been, and its functions,
    /// whatever it waits for. A thread that does not answer in 200 ms is listed with what the kernel says of it.
    ///
    /// # Errors
    /// In words: the system does not let it.
    pub fn stacks(&self) -> Result<Vec<ThreadStack>, String> {
        let inner = self.inner()?;
        stacks::stacks(&inner.hub.clock, &inner.cpu.symbols)
    }
}
