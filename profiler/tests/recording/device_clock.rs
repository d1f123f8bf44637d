//! When a device is asked: its clock beside the host's, and stages too short to be timed each time.

use std::time::{Duration, Instant};

use dflash_profiler::timeline::{Tail, read_iterations};
use dflash_profiler::{Kind, begin_iteration, span};

use crate::device_support::{device, ms, spans};
use crate::support::Recording;

/// Whoever reads the stream has what the profiler had: each anchor is right within what it says of itself. A device's time
/// counts from its first anchor.
#[test]
fn anchors_are_in_the_stream_for_a_reader_to_fit_again() {
    let device = device(0);
    let stream = device.stream(0);
    let recording = Recording::with(|options| {
        options.write_every = ms(5);
        options.device.poll_every = ms(1);
        options.device.anchor_every = ms(20);
    });
    let lane = recording.profiler.lane("drafter:0", "cuda:0").enter();
    let mut tail = Tail::open(&recording.run).unwrap();
    let begin = Instant::now();
    while tail.timeline().device_anchors.len() < 10 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", tail.timeline().device_anchors);
        let _span = span!("work", &stream);
        std::thread::sleep(ms(5));
        tail.poll().unwrap();
    }
    drop(lane);
    let (timeline, _) = recording.finish();
    let (first, since) = (timeline.device_anchors[0], |host_ns| device.device_ns(host_ns));
    for anchor in &timeline.device_anchors {
        assert_eq!(timeline.name(anchor.device), "cuda:0");
        let off = since(anchor.host_ns) - since(first.host_ns) - (anchor.device_ns - first.device_ns);
        let allowed = (anchor.uncertainty_ns + first.uncertainty_ns) as i64 + 64;
        assert!(off.abs() <= allowed, "{off} ns off, {allowed} are allowed: {anchor:?}");
    }
}

#[test]
fn short_stages_are_timed_in_some_iterations_only() {
    let stream = device(0).stream(0);
    let recording = Recording::with(|options| {
        options.write_every = ms(2);
        options.device.poll_every = ms(1);
        options.device.stride_below = Duration::from_millis(4);
    });
    let lane = recording.profiler.lane("drafter:0", "cuda:0").enter();
    let begin = Instant::now();
    let mut iterations = 0;
    // Until the lane has learnt that the stage is short, and a good while on.
    let mut last = 0;
    while last < 100 {
        let _iteration = begin_iteration(Kind::Train);
        {
            let _long = span!("long", &stream);
            stream.work(ms(5));
        }
        let before = stream.records();
        {
            let _short = span!("short", &stream);
            stream.work(Duration::from_micros(600));
        }
        // The begin may be shared with the end of `long`: the end is recorded, or not.
        last = if stream.records() == before { last + 1 } else { last };
        iterations += 1;
        std::thread::sleep(ms(6));
        assert!(begin.elapsed() < Duration::from_secs(60), "{iterations} iterations, {last} without an event");
    }
    drop(lane);
    let (timeline, totals) = recording.finish();
    assert_eq!(totals.unresolved, 0);
    let name = "device.stride.drafter:0.short";
    let counter = timeline.counters.iter().position(|c| c.name == name).expect("it is in the stream");
    let stride = timeline.samples.iter().find(|s| s.counter.0 == counter as u32).unwrap().value as u64;
    assert!([2, 4, 8].contains(&stride), "{stride}");
    assert!(spans(&timeline, "long").iter().all(|span| span.device.is_some()));
    let short = spans(&timeline, "short");
    assert_eq!(short.len(), iterations, "the host's time is taken in all");
    let timed: Vec<u64> = short.iter().filter(|s| s.device.is_some()).filter_map(|s| s.iteration).collect();
    assert!(timed.len() < iterations && timed.iter().rev().take(5).all(|n| n % 2 == 0), "{timed:?}");
    let rows = read_iterations(&recording.run.iterations_csv()).unwrap();
    let known = rows.iter().filter(|row| row.stage == "short" && row.device_ns.is_some()).count();
    assert_eq!(known, timed.len(), "empty is not 0");
}
