//! Kernel capture where there is no kernel: the operators of all threads.

use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{alone, events, threads_with};
use dflash_torch::{CapturedTrace, TorchError, as_operator, prepare_capture, start_capture, stop_capture};
use tch::{Device, Kind, Tensor};

fn multiply() {
    let a = Tensor::ones([64, 64], (Kind::Float, Device::Cpu));
    assert_eq!(a.mm(&a).double_value(&[0, 0]), 64.0);
}

/// Captures `work`, with begin and end on two threads that do none of it.
fn captured(file: &Path, work: impl FnOnce()) -> CapturedTrace {
    thread::spawn(start_capture).join().expect("no panic").expect("a begin");
    work();
    let file = file.to_owned();
    thread::spawn(move || stop_capture(&file)).join().expect("no panic").expect("a trace")
}

fn named(trace: &CapturedTrace, name: &str) -> i64 {
    let found: Vec<_> = trace.threads.iter().filter(|t| t.name.as_deref() == Some(name)).collect();
    assert_eq!(found.len(), 1, "{name} in {:?}", trace.threads);
    assert!(found[0].operators > 0);
    found[0].tid
}

#[test]
fn operators_of_two_threads_that_were_there_before_are_in_the_capture() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("kernels.json");
    let (begun, worked, ended) = (Barrier::new(3), Barrier::new(3), Barrier::new(3));
    let lane = || {
        // libtorch sees the thread before the capture, so what it caches of callbacks is old.
        multiply();
        begun.wait();
        multiply();
        worked.wait();
        ended.wait();
    };
    let trace = thread::scope(|scope| {
        for name in ["target:0", "drafter:0"] {
            thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, lane).unwrap();
        }
        let trace = captured(&file, || {
            begun.wait();
            worked.wait();
        });
        ended.wait();
        trace
    });
    let tids = [named(&trace, "target:0"), named(&trace, "drafter:0")];
    assert_eq!(trace.file, file);
    let events = events(&file);
    let multiplied = threads_with(&events, "cpu_op", "aten::mm");
    assert!(tids.iter().all(|tid| multiplied.contains(tid)), "{tids:?} in {multiplied:?}");
    // Beside it nothing is left.
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_backward_pass_is_in_the_capture() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("kernels.json");
    let trace = captured(&file, || {
        let w = Tensor::ones([64, 64], (Kind::Float, Device::Cpu)).set_requires_grad(true);
        w.mm(&w).sum(Kind::Float).backward();
        assert!(w.grad().defined());
    });
    assert!(!trace.threads.is_empty());
    let events = events(&file);
    assert!(!threads_with(&events, "cpu_op", "MmBackward").is_empty());
}

#[test]
fn the_trace_begins_at_the_time_of_day() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let now = || std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
    let before = now();
    let trace = captured(&dir.path().join("kernels.json"), multiply);
    // A clock that is set meanwhile may be off by as much, hardly by more.
    let second = 1_000_000_000;
    assert!((before - second..now() + second).contains(&trace.begin_ns), "{} after {before}", trace.begin_ns);
}

#[test]
fn one_capture_at_a_time_and_many_after_each_other() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(stop_capture(&dir.path().join("none.json")), Err(TorchError::NotCapturing));
    for round in 0..3 {
        prepare_capture().unwrap();
        start_capture().unwrap();
        assert_eq!(start_capture(), Err(TorchError::Capturing));
        assert_eq!(prepare_capture(), Err(TorchError::Capturing));
        multiply();
        let trace = stop_capture(&dir.path().join(format!("{round}.json"))).unwrap();
        assert!(!threads_with(&events(&trace.file), "cpu_op", "aten::mm").is_empty(), "round {round}");
        assert_eq!(stop_capture(&dir.path().join("none.json")), Err(TorchError::NotCapturing));
    }
}

#[test]
fn a_trace_that_has_no_place_is_refused_and_the_capture_has_ended() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("there.json");
    std::fs::write(&there, "mine").unwrap();
    for file in [there.clone(), dir.path().join("no/such/dir.json"), "/dev/full/x.json".into(), "/".into()] {
        start_capture().unwrap();
        multiply();
        let error = stop_capture(&file).unwrap_err();
        assert!(matches!(&error, TorchError::Trace { file: named, .. } if *named == file), "{error}");
        assert_eq!(stop_capture(&file), Err(TorchError::NotCapturing));
    }
    assert_eq!(std::fs::read_to_string(&there).unwrap(), "mine");
}

#[test]
fn captures_come_and_go_under_work() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let (stop, done) = (AtomicBool::new(false), [AtomicU64::new(0), AtomicU64::new(0)]);
    let counts = || done.each_ref().map(|done| done.load(Ordering::Relaxed));
    thread::scope(|scope| {
        for done in &done {
            let stop = &stop;
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    multiply();
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for round in 0..4 {
            start_capture().unwrap();
            // Until each has begun and ended some, on a busy machine too.
            let (before, begin) = (counts(), Instant::now());
            while (0..2).any(|thread| counts()[thread] < before[thread] + 3) {
                assert!(begin.elapsed() < Duration::from_secs(60), "round {round}: {:?} after {before:?}", counts());
                thread::sleep(Duration::from_millis(5));
            }
            let trace = stop_capture(&dir.path().join(format!("{round}.json"))).unwrap();
            assert!(trace.threads.len() >= 2, "round {round}: {:?}", trace.threads);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_capture_does_not_end_under_an_operator_that_blocks() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let (before, inside, release) = (Barrier::new(2), Barrier::new(2), Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(|| {
            // One that began before the capture is not in it, and keeps nobody waiting.
            as_operator("outer", || {
                before.wait();
                before.wait();
                as_operator("blocked", || {
                    inside.wait();
                    release.wait();
                })
                .unwrap();
            })
            .unwrap();
        });
        before.wait();
        start_capture().unwrap();
        before.wait();
        inside.wait();
        // What happened before: this ended, the next one began, and the operator wrote its end into freed memory.
        let file = dir.path().join("blocked.json");
        assert_eq!(stop_capture(&file), Err(TorchError::InFlight { count: 1 }));
        assert_eq!(start_capture(), Err(TorchError::InFlight { count: 1 }));
        assert!(!file.exists());
        release.wait();
        let trace = stop_capture(&file).unwrap();
        assert_eq!(trace.threads.iter().map(|thread| thread.operators).sum::<u64>(), 0, "it is no operator of torch's");
        assert!(std::fs::read_to_string(&file).unwrap().contains("blocked"));
    });
    start_capture().unwrap();
    multiply();
    assert!(!stop_capture(&dir.path().join("after.json")).unwrap().threads.is_empty());
}
