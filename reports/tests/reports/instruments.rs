//! Device times, hints, allocators and sensors.

use crate::support::{Builder, MS, on_gpu};
use dflash_reports::allocator::allocators;
use dflash_reports::gpu::gpus;
use dflash_reports::report::{Report, table};
use dflash_reports::stages::{Hint, Window, stage_table};
use dflash_reports::text::Look;
use dflash_reports::timeline::record::Kind;

fn all() -> Window {
    Window::default()
}

#[test]
fn hints_stand_beside_their_stages() {
    let table = stage_table(&on_gpu().timeline, &all());
    let lane = &table.lanes[0];
    let hint = |stage| lane.stage(stage).unwrap().hint;
    assert_eq!(hint("drafter.forward"), Some(Hint::Asynchronous));
    assert_eq!(hint("drafter.clip"), Some(Hint::Sync), "three quarters of it is sync.norm");
    assert_eq!((hint("drafter.wait"), hint("drafter.step")), (None, None), "three device times are too few");
}

/// A host whose launch queue is full launches as fast as the device works: that is no wait to be looked for. A wait at the
/// end of the stage leaves the device level with the host.
#[test]
fn a_full_launch_queue_is_no_hidden_sync() {
    let mut b = Builder::new().lane_on("drafter:0", "cuda:0");
    for _ in 0..10 {
        b = b.iteration(Kind::Train, 0, |b| {
            b.launched("drafter.forward", 10 * MS, 6 * MS, 10 * MS).launched("drafter.clip", 10 * MS, 2 * MS, 8 * MS);
        });
    }
    let table = stage_table(&b.timeline, &all());
    let hint = |stage| table.lanes[0].stage(stage).unwrap().hint;
    assert_eq!((hint("drafter.forward"), hint("drafter.clip")), (Some(Hint::HeldBack), Some(Hint::HiddenSync)));
}

#[test]
fn sampled_device_times_are_averaged_over_those_that_there_are() {
    let table = stage_table(&on_gpu().timeline, &all());
    let lane = &table.lanes[0];
    let step = lane.stage("drafter.step").unwrap();
    assert_eq!((step.host.count, step.device.map(|d| (d.count, d.p50_ns))), (30, Some((3, MS))));
    let total = lane.total_device.map(|d| (d.count, d.p50_ns));
    assert_eq!(total, Some((3, 6 * MS)), "an iteration without the step's device time would pass for a shorter one");
}

#[test]
fn part_of_a_stages_device_time_is_none() {
    let b = Builder::new().lane_on("drafter:0", "cuda:0").iteration(Kind::Train, 0, |b| {
        b.launched("drafter.loss", MS, 0, MS).span("drafter.loss", MS);
    });
    assert_eq!(stage_table(&b.timeline, &all()).lanes[0].stage("drafter.loss").unwrap().device, None);
}

#[test]
fn allocations_are_charged_to_stages_and_late_ones_told_apart() {
    let b = on_gpu(); // iteration 20 ends at 210.001 ms
    let end = b.timeline.iterations[20].begin_ns + b.timeline.iterations[20].duration_ns as i64;
    let b =
        b.readings("allocator.cuda:0.device_allocations.drafter.forward", "count", &[(end - 1, 3.0), (end + 1, 2.0)]);
    let b = b.readings("allocator.cuda:0.device_allocations", "count", &[(end, 4.0)]);
    let b = b.readings("allocator.cuda:0.retries.drafter.step", "count", &[(end, 1.0)]);
    let b = b.readings("allocator.cuda:0.reserved", "bytes", &[(0, 1e9), (end, 3e9)]);
    let b = b.readings("allocator.cuda:1.active", "bytes", &[(0, 1e9)]);
    let found = allocators(&b.timeline, &all());
    let rows: Vec<_> = found[0].stages.iter().map(|s| (s.stage.as_deref(), s.device_allocations, s.retries)).collect();
    assert_eq!(rows, [(None, 4, 0), (Some("drafter.forward"), 5, 0), (Some("drafter.step"), 0, 1)]);
    assert_eq!(found[0].late_device_allocations, Some(2), "what moved up to the end of iteration 20 is early");
    assert_eq!(found[0].reserved.map(|r| (r.mean, r.max)), Some((2e9, 3e9)));
    assert_eq!(found[1].late_device_allocations, None, "no lane on that device has done 20 iterations");
    let text = table(&Report::of(&b.timeline, &all()).unwrap(), Look::default());
    assert!(text.contains("  device allocations after iteration 20: N/A\n"), "known of one device only: {text}");
    let mut one = b.timeline;
    one.samples.retain(|sample| sample.counter.0 < 4);
    let text = table(&Report::of(&one, &all()).unwrap(), Look::default());
    assert!(text.contains("  device allocations after iteration 20: 2\n"), "{text}");
}

#[test]
fn sensors_and_energy_by_token() {
    let b = on_gpu().readings("gpu.0.power", "W", &[(0, 100.0), (1, 300.0), (2, f64::NAN)]);
    let b = b.readings("gpu.0.throttle", "", &[(0, 1.0), (1, 0.0), (2, 4.0), (3, 5.0)]);
    // Iterations 1 to 10 end between the readings: 1,000 tokens.
    let b = b.readings("gpu.0.energy", "mJ", &[(11_000_000, 5_000.0), (110_500_000, 9_000.0)]);
    let b = b.readings("gpu.0.nvlink.tx", "bytes/s", &[(0, 7.0)]);
    let found = gpus(&b.timeline, &all());
    let gpu = &found[0];
    let sensor = |name| gpu.sensors.iter().find(|s| s.sensor == name).unwrap().range;
    assert_eq!(sensor("power").map(|r| (r.readings, r.mean, r.min, r.max)), Some((2, 200.0, 100.0, 300.0)));
    assert_eq!(sensor("temperature"), None);
    assert_eq!(sensor("nvlink.tx").map(|r| r.mean), Some(7.0));
    assert_eq!(gpu.throttled_share, Some(0.5), "idling is no throttling");
    assert_eq!((gpu.energy_j, gpu.energy_per_token_j), (Some(4.0), Some(0.004)));
    let text = table(&Report::of(&b.timeline, &all()).unwrap(), Look::default());
    assert!(text.contains("0: energy 4 J, 4.00 mJ by token; throttled in 50.0 % of the readings"), "{text}");
    assert!(text.contains("  0       temperature          N/A          N/A          N/A\n"), "{text}");
    assert!(!text.contains("together:"), "{text}");
    let b = b.readings("gpu.1.energy", "J", &[(11_000_000, 5.0), (110_500_000, 7.0)]);
    let text = table(&Report::of(&b.timeline, &all()).unwrap(), Look::default());
    assert!(text.contains("  together: energy 6 J, 6.00 mJ by token\n"), "{text}");
}
