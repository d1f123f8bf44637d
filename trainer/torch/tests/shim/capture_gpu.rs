//! Kernel capture with kernels.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::{GPU, alone, events, gpus, threads_with};
use dflash_torch::{Priority, Stream, start_capture, stop_capture};
use tch::{Kind, Tensor};

/// Forward and backward, as a drafter's lane does it.
fn step() {
    let x = Tensor::ones([256, 256], (Kind::Float, GPU));
    let w = Tensor::ones([256, 256], (Kind::Float, GPU)).set_requires_grad(true);
    x.mm(&w).relu().sum(Kind::Float).backward();
    assert!(w.grad().defined());
}

#[test]
fn kernels_of_two_lanes_and_of_autograd_are_in_the_capture() {
    let Some(_gpus) = gpus("kernels_of_two_lanes_and_of_autograd_are_in_the_capture", 1) else { return };
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("kernels.json");
    let (begun, worked, ended) = (Barrier::new(3), Barrier::new(3), Barrier::new(3));
    let lane = || {
        let stream = Stream::from_pool(GPU, Priority::Normal).unwrap();
        let _guard = stream.enter().unwrap();
        step();
        begun.wait();
        step();
        stream.synchronize().unwrap();
        worked.wait();
        ended.wait();
    };
    let trace = thread::scope(|scope| {
        for name in ["target:0", "drafter:0"] {
            thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, lane).unwrap();
        }
        let unseen = thread::spawn(|| start_capture().unwrap()).join().unwrap();
        begun.wait();
        worked.wait();
        let trace = stop_capture(&file).unwrap();
        ended.wait();
        eprintln!("unseen {unseen:?}, kernels {}, threads {:?}", trace.kernels, trace.threads);
        trace
    });
    assert!(trace.kernels >= 4, "{} kernels", trace.kernels);
    let events = events(&file);
    let kernels = events.iter().filter(|e| e["cat"] == "kernel").count();
    assert!(kernels >= 4, "{kernels} kernels in the file");
    for lane in ["target:0", "drafter:0"] {
        let tid = trace.threads.iter().find(|t| t.name.as_deref() == Some(lane)).map(|t| t.tid);
        let tid = tid.unwrap_or_else(|| panic!("{lane} is not among {:?}", trace.threads));
        assert!(threads_with(&events, "cpu_op", "aten::mm").contains(&tid), "{lane} has no product");
    }
    // On a GPU the backward pass runs on a thread of autograd's, which is none of the lanes.
    let backward = threads_with(&events, "cpu_op", "MmBackward");
    let lanes: Vec<i64> = threads_with(&events, "cpu_op", "aten::relu");
    assert!(!backward.is_empty() && backward.iter().all(|tid| !lanes.contains(tid)), "{backward:?} and {lanes:?}");
}

#[test]
fn captures_come_and_go_while_lanes_train() {
    let Some(_gpus) = gpus("captures_come_and_go_while_lanes_train", 1) else { return };
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let (stop, warm) = (AtomicBool::new(false), Barrier::new(3));
    thread::scope(|scope| {
        let _stop = StopOnDrop(&stop);
        for name in ["target:0", "drafter:0"] {
            let lane = || {
                let stream = Stream::from_pool(GPU, Priority::Normal).unwrap();
                let _guard = stream.enter().unwrap();
                (0..20).for_each(|_| step());
                warm.wait();
                while !stop.load(Ordering::Relaxed) {
                    step();
                }
            };
            thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, lane).unwrap();
        }
        warm.wait();
        for round in 0..5 {
            start_capture().unwrap();
            thread::sleep(Duration::from_millis(200));
            let trace = stop_capture(&dir.path().join(format!("{round}.json"))).unwrap();
            eprintln!("round {round}: kernels {}, threads {:?}", trace.kernels, trace.threads);
            assert!(trace.kernels > 0, "round {round}");
            // Two lanes, and autograd's thread of this GPU.
            assert!(trace.threads.len() >= 3, "round {round}");
        }
    });
}

/// A failed assertion must end the lanes too, else the test hangs.
struct StopOnDrop<'a>(&'a AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
