//! What the allocator does is charged to the stage in which it does it.

use std::collections::BTreeMap;

use dflash_profiler::sim::SimAllocator;
use dflash_profiler::timeline::Timeline;
use dflash_profiler::{Kind, Level, begin_iteration, span};

use crate::support::Recording;

/// The readings of every counter of the allocator.
fn readings(timeline: &Timeline) -> BTreeMap<&str, Vec<f64>> {
    let mut readings: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for sample in &timeline.samples {
        let counter = &timeline.counters[sample.counter.0 as usize];
        if let Some(name) = counter.name.strip_prefix("allocator.cuda:0.") {
            let unit = if ["reserved", "active"].contains(&name) { "bytes" } else { "count" };
            assert_eq!(counter.unit, unit);
            readings.entry(name).or_default().push(sample.value);
        }
    }
    readings
}

#[test]
fn counters_are_charged_to_the_stage_in_which_they_move() {
    let recording = Recording::start(Level::Layers);
    let allocator = SimAllocator::new("cuda:0");
    allocator.change(|c| (c.device_allocations, c.allocations) = (100, 5_000));
    let lane = recording.profiler.lane("drafter:0", "cuda:0").allocator(Box::new(allocator.clone())).enter();
    for step in 0..3 {
        let _iteration = begin_iteration(Kind::Train);
        {
            let _forward = span!("drafter.forward");
            allocator.change(|c| c.allocations += 7);
            let _layer = span!("drafter.layer");
            if step == 0 {
                allocator.change(|c| (c.device_allocations, c.reserved_bytes) = (c.device_allocations + 4, 1 << 30));
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
        if step == 1 {
            allocator.change(|c| c.device_frees += 2);
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
        let _backward = span!("drafter.backward");
        allocator.change(|c| (c.retries, c.active_bytes) = (c.retries + 1, 1_000 * step));
    }
    allocator.change(|c| c.out_of_memory += 9);
    drop(lane);
    let (timeline, totals) = recording.finish();
    assert_eq!((totals.dropped, timeline.marks.len()), (0, 0));
    insta::assert_debug_snapshot!(readings(&timeline), @r#"
    {
        "active": [
            0.0,
            1000.0,
            2000.0,
        ],
        "allocations": [
            7.0,
            7.0,
            7.0,
        ],
        "device_allocations.drafter.forward": [
            4.0,
        ],
        "device_frees.residue": [
            2.0,
        ],
        "reserved": [
            1073741824.0,
            1073741824.0,
            1073741824.0,
        ],
        "retries.drafter.backward": [
            1.0,
            1.0,
            1.0,
        ],
    }
    "#);
}

#[test]
fn an_allocator_without_counters_is_said_once() {
    let recording = Recording::start(Level::Stages);
    let allocator = SimAllocator::new("cuda:0");
    allocator.fail("no caching allocator is in use");
    let lane = recording.profiler.lane("drafter:0", "cuda:0").allocator(Box::new(allocator)).enter();
    for _ in 0..5 {
        let _iteration = begin_iteration(Kind::Train);
        let _span = span!("stage");
    }
    drop(lane);
    let (timeline, _) = recording.finish();
    assert_eq!((timeline.spans.len(), timeline.samples.len(), timeline.marks.len()), (5, 0, 1));
    assert!(timeline.marks[0].text.contains("drafter:0") && timeline.marks[0].text.contains("no caching allocator"));
}

#[test]
fn a_bare_iteration_does_not_look() {
    let recording = Recording::with(|options| (options.bare.pairs, options.bare.from) = (10, 0));
    let allocator = SimAllocator::new("cuda:0");
    let lane = recording.profiler.lane("drafter:0", "cuda:0").allocator(Box::new(allocator.clone())).enter();
    for _ in 0..20 {
        let _iteration = begin_iteration(Kind::Train);
        let _span = span!("stage");
        allocator.change(|c| c.device_allocations += 1);
    }
    drop(lane);
    let readings = readings(&recording.finish().0).into_iter().map(|(n, v)| (n.to_owned(), v)).collect::<Vec<_>>();
    // What moved in a bare iteration is seen when the next one begins, and is no stage's.
    assert!(readings.iter().all(|(name, values)| name.ends_with(".residue") || values.len() == 10), "{readings:?}");
    assert!(readings.iter().any(|(name, values)| name == "device_allocations.stage" && *values == [1.0; 10]));
}

#[test]
fn lanes_of_one_device_charge_each_move_once() {
    let recording = Recording::start(Level::Stages);
    let allocator = SimAllocator::new("cuda:0");
    allocator.change(|c| c.device_allocations = 40);
    let lane = |name: &str| recording.profiler.lane(name, "cuda:0").allocator(Box::new(allocator.clone()));
    let (target, drafter) = (lane("target:0"), lane("drafter:0"));
    let outer = target.enter();
    {
        let _iteration = begin_iteration(Kind::Train);
        let _span = span!("target.forward");
        allocator.change(|c| c.device_allocations += 3);
    }
    {
        // The other lane sees the same counters, which have moved since it was made.
        let _inner = drafter.enter();
        let _iteration = begin_iteration(Kind::Train);
        let _span = span!("drafter.forward");
        allocator.change(|c| c.device_allocations += 5);
    }
    {
        let _iteration = begin_iteration(Kind::Train);
        let _span = span!("target.forward");
        allocator.change(|c| c.device_allocations += 1);
    }
    drop(outer);
    let (timeline, _) = recording.finish();
    let moved: Vec<_> = readings(&timeline).into_iter().filter(|(name, _)| name.starts_with("device_")).collect();
    let expected =
        [("device_allocations.drafter.forward", vec![5.0]), ("device_allocations.target.forward", vec![3.0, 1.0])];
    assert_eq!(moved, expected);
}
