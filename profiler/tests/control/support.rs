//! A training that goes on in this process, and clients of it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use dflash_profiler::timeline::control::{Answer, Ask, Client, Error};
use dflash_profiler::timeline::record::Mark;
use dflash_profiler::timeline::{Manifest, RunDir, Timeline, read};
use dflash_profiler::{DeviceError, KernelCapture, Kind, Level, Options, Profiler, begin_iteration, span};

/// The level is the process's, so one test records at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// How long anything may take on a machine that does other things too.
pub const LONG: Duration = Duration::from_secs(60);

pub struct Run {
    pub profiler: Profiler,
    pub run: RunDir,
    _directory: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Run {
    pub fn start() -> Self {
        Self::with(|_| ())
    }

    pub fn with(change: impl FnOnce(&mut Options)) -> Self {
        let alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
        let directory = tempfile::tempdir().unwrap();
        let run = RunDir::create(directory.path(), "test", Manifest::default()).unwrap();
        let mut options = options(&run);
        change(&mut options);
        let profiler = Profiler::start(options).unwrap();
        Self { profiler, run, _directory: directory, _alone: alone }
    }

    pub fn socket(&self) -> PathBuf {
        self.run.manifest().unwrap().control.expect("run.json names the socket")
    }

    pub fn client(&self) -> Client {
        Client::connect(&self.run, 0, "test").unwrap()
    }

    pub fn ask(&self, ask: Ask) -> Result<Answer, Error> {
        self.client().ask(ask, &mut |_| {})
    }

    /// What a refused request says.
    pub fn refusal(&self, ask: Ask) -> String {
        match self.ask(ask) {
            Err(Error::Refused(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    /// Ends the recording and reads its marks.
    pub fn marks(&self) -> Vec<Mark> {
        self.finish().marks
    }

    pub fn finish(&self) -> Timeline {
        let totals = self.profiler.finish();
        assert_eq!(totals.emitted, totals.written + totals.dropped, "{totals:?}");
        read(&self.run).unwrap()
    }
}

pub fn options(run: &RunDir) -> Options {
    let mut options = Options::new(run.clone());
    options.level = Level::Stages;
    (options.sample_every, options.nvml.every) = (None, None);
    options.write_every = Duration::from_millis(20);
    options
}

/// Waits until something is so.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < LONG, "{what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// A lane that works until it is dropped.
pub struct Loop {
    stop: Arc<AtomicBool>,
    pub done: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Loop {
    /// Iterations of `length` each, of kinds by number.
    pub fn start(profiler: &Profiler, lane: &str, length: Duration, kind: fn(u64) -> Kind) -> Self {
        let (stop, done) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let lane = profiler.lane(lane, "cpu");
        let (stopped, counted) = (Arc::clone(&stop), Arc::clone(&done));
        let work = move || {
            let _lane = lane.enter();
            for number in 0.. {
                if stopped.load(Ordering::Relaxed) {
                    break;
                }
                let _iteration = begin_iteration(kind(number));
                let _span = span!("test.work");
                thread::sleep(length);
                counted.fetch_add(1, Ordering::Relaxed);
            }
        };
        Self { stop, done, thread: Some(thread::spawn(work)) }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A tracer that notes what it is asked.
#[derive(Debug, Default)]
pub struct FakeTracer {
    pub running: AtomicBool,
    pub starts: AtomicU64,
    pub fail_start: AtomicBool,
    pub fail_stop: AtomicBool,
    pub slow_start: Duration,
    /// What is traced is written only once this is false again.
    pub held: AtomicBool,
}

impl KernelCapture for FakeTracer {
    fn start(&self) -> Result<Vec<String>, DeviceError> {
        thread::sleep(self.slow_start);
        if self.fail_start.load(Ordering::Relaxed) {
            return Err(DeviceError("another tool holds the tracer".into()));
        }
        assert!(!self.running.swap(true, Ordering::Relaxed), "started twice");
        assert_eq!(thread::current().name(), Some("dflash-kernels"));
        self.starts.fetch_add(1, Ordering::Relaxed);
        Ok(vec!["the operators of loader".into()])
    }

    fn stop(&self, file: &Path) -> Result<(), DeviceError> {
        assert!(self.running.swap(false, Ordering::Relaxed), "stopped without a start");
        assert!(!file.exists(), "the name is free");
        until("the test lets it write", || !self.held.load(Ordering::Relaxed));
        if self.fail_stop.load(Ordering::Relaxed) {
            return Err(DeviceError("the disk is full".into()));
        }
        std::fs::write(file, "{\"traceEvents\":[]}").map_err(|e| DeviceError(e.to_string()))
    }

    fn lanes_without_operators(&self, lanes: &[String]) -> Vec<String> {
        lanes.iter().filter(|lane| lane.starts_with("target")).cloned().collect()
    }
}
