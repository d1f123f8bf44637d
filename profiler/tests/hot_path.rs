//! Recording asks for no memory: neither in the loop nor, once it is warm, on a device.

#![cfg(feature = "spans")]

use std::time::{Duration, Instant};

use dflash_profiler::sim::{SimClock, SimDevice};
use dflash_profiler::timeline::{Manifest, RunDir};
use dflash_profiler::{Kind, Level, Options, Profiler, add_time, begin_iteration, flow_put, flow_take, span};
use dflash_sys::{Counting, allocations};

#[global_allocator]
static COUNTING: Counting = Counting;

/// What the calling thread has allocated in so many passes.
fn allocated(passes: u64, mut pass: impl FnMut(u64)) -> u64 {
    let before = allocations();
    (0..passes).for_each(&mut pass);
    allocations() - before
}

fn on_the_host(pass: u64) {
    let iteration = begin_iteration(Kind::Train);
    iteration.tokens(pass);
    flow_take(pass);
    {
        let _stage = span!("drafter.forward");
        for layer in 0..8 {
            let _layer = span!("drafter.layer", index = layer);
        }
    }
    let _stage = span!("drafter.log");
    add_time("elsewhere", Duration::from_micros(3));
    flow_put(pass);
}

#[test]
fn recording_allocates_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let run = RunDir::create(directory.path(), "hot", Manifest::default()).unwrap();
    let mut options = Options::new(run);
    options.level = Level::Layers;
    let profiler = Profiler::start(options).unwrap();
    let depth = profiler.counter("queue.depth", "items");
    let stream = SimDevice::new(0, SimClock::real()).stream(0);
    let lane = profiler.lane("drafter:0", "cuda:0").enter();
    assert!(allocated(1, |_| drop(vec![1_u8; 100])) > 0, "allocations are counted");

    // The first pass makes its call sites known.
    on_the_host(0);
    assert_eq!(allocated(5_000, on_the_host), 0);
    assert_eq!(allocated(5_000, |pass| depth.record(pass as f64)), 0, "there is no room for most of them");

    let mut on_a_device = |_| {
        let _iteration = begin_iteration(Kind::Train);
        let _stage = span!("drafter.backward", &stream);
        stream.work(Duration::from_micros(100));
    };
    // Events go from the lane to the collector and back: after a while there are enough of them.
    let begin = Instant::now();
    let mut made = Vec::new();
    while !made.ends_with(&[0; 5]) {
        assert!(begin.elapsed() < Duration::from_secs(60), "there is no end of it: {made:?}");
        made.push(allocated(50, &mut on_a_device));
        std::thread::sleep(Duration::from_millis(20));
    }
    drop(lane);
    let totals = profiler.finish();
    assert!(totals.written > 10_000, "all of that was recorded: {totals:?}");
}
