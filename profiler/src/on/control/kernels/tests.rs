use super::*;
use std::path::Path;

use dflash_timeline::{Manifest, RunDir};

use crate::{DeviceError, Kind, Options, Profiler, begin_iteration};

/// Fails a test that starts it.
#[derive(Debug)]
struct NeverStarted;

impl KernelCapture for NeverStarted {
    fn start(&self) -> Result<Vec<String>, DeviceError> {
        panic!("no iteration has begun");
    }

    fn stop(&self, _file: &Path) -> Result<(), DeviceError> {
        Ok(())
    }
}

#[test]
fn a_lane_that_stands_still_is_not_waited_for_for_ever() {
    let directory = tempfile::tempdir().unwrap();
    let run = RunDir::create(directory.path(), "stuck", Manifest::default()).unwrap();
    let profiler = Profiler::start(Options::new(run)).unwrap();
    profiler.kernel_capture(Arc::new(NeverStarted));
    *lock(&profiler.0.as_ref().unwrap().control.kernels.patience) = Duration::from_millis(50);
    let lane = profiler.lane("drafter:0", "cpu").enter();
    let stuck = begin_iteration(Kind::Train);
    let error = thread::scope(|scope| scope.spawn(|| profiler.capture_kernels(1)).join().unwrap()).unwrap_err();
    assert!(error.starts_with("no iteration of drafter:0 that trains began within 0.05 s"), "{error}");
    drop(stuck);
    // The tracer's panic ends the capture and nothing else.
    *lock(&profiler.0.as_ref().unwrap().control.kernels.patience) = LAST_TRACE;
    let control = &profiler.0.as_ref().unwrap().control;
    let job = control.start_kernels(1, "by a test").unwrap();
    while !matches!(job.wait(Duration::ZERO), Phase::Ended(_)) {
        let _iteration = begin_iteration(Kind::Train);
        thread::sleep(Duration::from_millis(5));
    }
    let Phase::Ended(Err(error)) = job.wait(Duration::ZERO) else { panic!("it cannot have worked") };
    assert!(error.contains("panicked"), "{error}");
    drop(lane);
    profiler.finish();
}
