//! A training loop that only sleeps, to try `dflash ctl` on: it takes every request and ends when it is asked to.
//!
//! `cargo run -p dflash-profiler --example live -- runs` prints the run's directory; then, elsewhere,
//! `dflash ctl --runs runs status`.

#![expect(clippy::print_stdout, reason = "whoever starts it has to learn where its run lies")]

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use dflash_profiler::timeline::{Manifest, RunDir, State};
use dflash_profiler::{DeviceError, KernelCapture, Kind, Options, Profiler, begin_iteration, span};

/// Ends by itself, so that a test that fails leaves nothing behind.
const LONGEST: Duration = Duration::from_secs(120);

fn main() -> Result<(), Box<dyn Error>> {
    let runs = std::env::args_os().nth(1).map_or_else(|| PathBuf::from("runs"), PathBuf::from);
    let run = RunDir::create(&runs, "live", Manifest::default())?;
    let mut options = Options::new(run.clone());
    // It uses no GPU; and it has few iterations, so none shall be bare.
    (options.nvml.every, options.bare.pairs) = (None, 0);
    let profiler = Profiler::start(options)?;
    profiler.kernel_capture(Arc::new(NoKernels));
    println!("{}", run.path().display());
    work(&profiler, &run);
    profiler.finish();
    let mut manifest = run.manifest()?;
    manifest.state = State::Stopped;
    Ok(run.write_manifest(&manifest)?)
}

fn work(profiler: &Profiler, run: &RunDir) {
    let (requests, begin) = (profiler.requests(), Instant::now());
    let _lane = profiler.lane("drafter:0", "cpu").enter();
    while !requests.stop() && begin.elapsed() < LONGEST {
        let iteration = begin_iteration(Kind::Train);
        {
            let _span = span!("drafter.forward");
            thread::sleep(Duration::from_millis(5));
        }
        if requests.take_checkpoint() {
            iteration.kind(Kind::Checkpoint);
            let file = run.path().join("checkpoint");
            let written = std::fs::write(&file, "nothing was learnt\n");
            requests.checkpoint_written(written.map(|()| file).map_err(|error| error.to_string()));
        }
    }
}

/// Where a framework's tracer would be.
#[derive(Debug)]
struct NoKernels;

impl KernelCapture for NoKernels {
    fn start(&self) -> Result<Vec<String>, DeviceError> {
        Ok(vec!["all kernels: this is an example".to_owned()])
    }

    fn stop(&self, file: &Path) -> Result<(), DeviceError> {
        std::fs::write(file, "{\"traceEvents\":[]}\n").map_err(|error| DeviceError(error.to_string()))
    }
}
