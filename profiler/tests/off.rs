//! Without the feature `spans` everything compiles, and nothing is left of it.

#![cfg(not(feature = "spans"))]

use std::fs;

use dflash_profiler::timeline::{Manifest, RunDir};
use dflash_profiler::{
    Counter, DeviceSpanGuard, IterationGuard, Kind, Lane, LaneGuard, Level, Options, Profiler, Severity, SpanGuard,
    add_time, begin_iteration, flow_put, flow_take, level, set_level, sim, span, take_stats,
};

#[test]
fn guards_have_no_size() {
    assert_eq!(size_of::<(SpanGuard, DeviceSpanGuard<'_>, IterationGuard, LaneGuard, Lane, Counter, Profiler)>(), 0);
    assert!(!std::mem::needs_drop::<SpanGuard>() && !std::mem::needs_drop::<IterationGuard>());
    assert!(!std::mem::needs_drop::<DeviceSpanGuard<'_>>());
}

#[test]
fn a_loop_runs_and_records_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let run = RunDir::create(directory.path(), "off", Manifest::default()).unwrap();
    let profiler = Profiler::start(Options::new(run.clone())).unwrap();
    let counter = profiler.counter("c", "items");
    let lane = profiler.lane("a", "cpu").allocator(Box::new(sim::SimAllocator::new("cuda:0")));
    let stream = sim::SimDevice::new(0, sim::SimClock::real()).stream(0);
    let (none, here) = (None::<sim::SimStream>, stream.clone());
    std::thread::spawn(move || {
        let _lane = lane.enter();
        for i in 0..3 {
            let iteration = begin_iteration(Kind::Train);
            let _span = span!("a.step", index = i);
            let _inner = span!("a.part");
            let _device = span!("a.device", &here);
            let _deeper = span!("a.deeper", &none, index = i);
            add_time("a.time", std::time::Duration::from_secs(1));
            iteration.tokens(3);
            iteration.kind(Kind::Eval);
            counter.record(1.0);
            flow_put(1);
            flow_take(1);
        }
        assert!(take_stats().is_empty());
    })
    .join()
    .unwrap();
    set_level(Level::Layers);
    assert_eq!(level(), Level::Off);
    profiler.mark(Severity::Info, "nothing");
    let requests = profiler.requests();
    assert!(!requests.stop() && !requests.take_checkpoint());
    assert!(profiler.capture_kernels(1).is_err());
    assert_eq!(run.manifest().unwrap().control, None);
    assert_eq!((profiler.trouble(), profiler.finish().emitted, profiler.lanes().len()), (None, 0, 0));
    assert_eq!(stream.records(), 0);
    assert_eq!(fs::read_dir(run.timeline_dir()).unwrap().count(), 0);
}
