//! A recording in a temporary directory, and threads that work or wait.

use std::hint::black_box;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use dflash_profiler::timeline::{Manifest, RunDir};
use dflash_profiler::{CpuReport, Options, Profiler};

use crate::profile::{Sample, read};

/// How long anything may take on a machine that does other things too.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Sampling and the level are the process's, so one test records at a time.
static ALONE: Mutex<()> = Mutex::new(());

pub struct Recording {
    pub profiler: Profiler,
    pub run: RunDir,
    pub directory: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Recording {
    pub fn start() -> Self {
        Self::with(|_| ())
    }

    pub fn with(change: impl FnOnce(&mut Options)) -> Self {
        let alone = ALONE.lock().unwrap_or_else(|e| e.into_inner());
        let directory = tempfile::tempdir().unwrap();
        let run = RunDir::create(directory.path(), "test", Manifest::default()).unwrap();
        let mut options = Options::new(run.clone());
        (options.sample_every, options.nvml.every) = (None, None);
        change(&mut options);
        Self { profiler: Profiler::start(options).unwrap(), run, directory, _alone: alone }
    }

    pub fn profile_file(&self) -> PathBuf {
        self.directory.path().join("cpu.pb")
    }

    /// Profiles while `work` runs.
    pub fn profile(&self, work: impl FnOnce()) -> (CpuReport, Vec<Sample>) {
        self.profiler.pprof_start(500).unwrap();
        work();
        let report = self.profiler.pprof_stop(&self.profile_file()).unwrap();
        let samples = read(&std::fs::read(self.profile_file()).unwrap());
        std::fs::remove_file(self.profile_file()).unwrap();
        assert_eq!(samples.iter().map(|s| s.count).sum::<u64>(), report.samples, "{report}");
        (report, samples)
    }
}

/// Uses CPU time, in a function of its own.
#[inline(never)]
pub fn burn_cpu(how_long: Duration) {
    let begin = dflash_sys::thread_cpu_ns();
    while dflash_sys::thread_cpu_ns() - begin < how_long.as_nanos() as u64 {
        (0..10_000_u64).for_each(|i| {
            black_box(i);
        });
    }
}

/// Waits until it holds; fails if it never does.
pub fn until(holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < PATIENCE, "it never came to that");
        std::thread::sleep(Duration::from_millis(2));
    }
}
