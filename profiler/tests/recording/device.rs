//! Spans with a stream, on a simulated device that works in real time.

use std::time::{Duration, Instant};

use dflash_profiler::sim::{SimDevice, SimStream};
use dflash_profiler::timeline::record::{Span, Stream, Totals};
use dflash_profiler::timeline::{Timeline, read_iterations};
use dflash_profiler::{DeviceStream, Kind, Level, begin_iteration, set_level, span};

use crate::device_support::{device, ms, recording, spans};

/// The simulated device places its events exactly: where the stream stood when they were recorded.
fn check(timeline: &Timeline, span: &Span, begin_ns: i64, end_ns: i64) {
    let device = span.device.unwrap_or_else(|| panic!("no device time: {span:?}"));
    let off = device.duration_ns as i64 - (end_ns - begin_ns);
    assert!(off.abs() <= 64 + (end_ns - begin_ns) / 100_000, "{off} ns off in {} ns: {span:?}", end_ns - begin_ns);
    // The anchors of a busy machine may be wide, and say how wide.
    let widest_ns = timeline.device_anchors.iter().map(|anchor| anchor.uncertainty_ns as i64).max().unwrap();
    let off = (device.begin_ns - begin_ns).abs();
    assert!(off < 2_000_000 + widest_ns, "begins at {begin_ns}, anchors are {widest_ns} ns wide: {span:?}");
}

#[test]
fn host_and_device_time_stand_side_by_side() {
    let device = device(0);
    let stream = device.stream(7);
    let recording = recording(Level::Layers);
    let lane = recording.profiler.lane("drafter:0", "cuda:0").enter();
    let mut truth = Vec::new();
    for _ in 0..20 {
        let _iteration = begin_iteration(Kind::Train);
        let forward = span!("drafter.forward", &stream);
        let begin = stream.free_ns();
        for i in 0..2 {
            let _layer = span!("drafter.layer", &stream, index = i);
            stream.work(ms(1));
        }
        drop(forward);
        truth.push((begin, stream.free_ns()));
        let _step = span!("drafter.step");
        std::thread::sleep(ms(3));
    }
    drop(lane);
    let (timeline, totals) = recording.finish();
    assert_eq!((totals.unresolved, totals.negative, totals.misplaced, totals.dropped), (0, 0, 0, 0));
    let forward = spans(&timeline, "drafter.forward");
    assert_eq!((forward.len(), spans(&timeline, "drafter.layer").len()), (20, 40));
    forward.iter().zip(&truth).for_each(|(span, (begin, end))| check(&timeline, span, *begin, *end));
    for span in spans(&timeline, "drafter.layer") {
        let time = span.device.unwrap().duration_ns;
        assert!(time >= 999_900, "{time} ns");
    }
    assert!(forward.iter().any(|span| span.duration_ns < 1_000_000), "the host only queues the work");
    assert!(spans(&timeline, "drafter.step").iter().all(|span| span.device.is_none()));
    let rows = read_iterations(&recording.run.iterations_csv()).unwrap();
    for (row, span) in rows.iter().filter(|row| row.stage == "drafter.forward").zip(&forward) {
        assert_eq!(row.device_ns, span.device.map(|device| device.duration_ns));
    }
    let others = |stage: &str| ["drafter.step", "residue", "total"].contains(&stage);
    assert!(rows.iter().filter(|row| others(&row.stage)).all(|row| row.device_ns.is_none()));
    assert_eq!((device.live_events(), device.refused()), (0, 0), "everything is given back");
    assert!(device.created_events() < stream.records(), "they are used again");
}

#[test]
fn two_streams_and_two_devices_on_one_lane() {
    let devices = [device(0), device(1)];
    let streams = [devices[0].stream(0), devices[0].stream(1), devices[1].stream(0)];
    let recording = recording(Level::Layers);
    let lane = recording.profiler.lane("drafter:0", "cuda:0").enter();
    let mut truth = Vec::new();
    for step in 0..30 {
        let (a, b) = (&streams[step % 3], &streams[(step + 1) % 3]);
        let outer = span!("outer", a);
        let outer_ns = a.free_ns();
        a.work(ms(1));
        let inner = span!("inner", b);
        let inner_ns = b.free_ns();
        b.work(Duration::from_micros(300));
        drop(inner);
        let inner_ns = (inner_ns, b.free_ns());
        drop(outer);
        truth.push(((outer_ns, a.free_ns()), inner_ns));
    }
    drop(lane);
    let (timeline, totals) = recording.finish();
    assert_eq!(totals.unresolved, 0);
    for (place, name) in ["outer", "inner"].into_iter().enumerate() {
        let spans = spans(&timeline, name);
        assert_eq!(spans.len(), 30);
        for (step, (span, truth)) in spans.iter().zip(&truth).enumerate() {
            let (begin, end) = if place == 0 { truth.0 } else { truth.1 };
            check(&timeline, span, begin, end);
            let stream = span.device.and_then(|device| device.stream).and_then(|stream| timeline.stream(stream));
            let (device, number) = [("cuda:0", 0), ("cuda:0", 1), ("cuda:1", 0)][(step + place) % 3];
            assert_eq!(stream, Some(&Stream { device: device.into(), number, rank: 0 }), "{name} {step}");
        }
    }
    assert_eq!(timeline.streams.len(), 3);
    assert_eq!(devices.each_ref().map(SimDevice::refused), [0, 0], "no event of one device went to the other");
    assert_eq!(devices.each_ref().map(SimDevice::live_events), [0, 0]);
}

#[test]
fn a_loop_without_a_stream_has_host_spans() {
    let recording = recording(Level::Layers);
    let lane = recording.profiler.lane("drafter:0", "cpu").enter();
    let none: Option<SimStream> = None;
    let boxed: Option<Box<dyn DeviceStream>> = None;
    {
        let _iteration = begin_iteration(Kind::Train);
        let _stage = span!("stage", &none);
        let _layer = span!("layer", &boxed, index = 3);
        let _last = span!("last", boxed.as_deref());
    }
    drop(lane);
    let (timeline, totals) = recording.finish();
    assert_eq!((totals.unresolved, timeline.spans.len()), (0, 3));
    assert!(timeline.spans.iter().all(|span| span.device.is_none()));
    assert_eq!(spans(&timeline, "layer")[0].index, Some(3));
    assert_eq!(timeline.spans.iter().map(|span| span.depth).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn a_stream_behind_a_pointer() {
    let stream = device(0).stream(0);
    let recording = recording(Level::Stages);
    let lane = recording.profiler.lane("a", "cpu").enter();
    let boxed: Box<dyn DeviceStream> = Box::new(stream.clone());
    let shared: std::sync::Arc<dyn DeviceStream> = std::sync::Arc::new(stream.clone());
    let maybe = Some(stream.clone());
    drop(span!("a", &boxed));
    drop(span!("b", &shared));
    drop(span!("c", &*boxed));
    drop(span!("d", &maybe));
    drop(span!("e", maybe.as_ref()));
    drop(lane);
    let (timeline, _) = recording.finish();
    assert_eq!(timeline.spans.iter().filter(|span| span.device.is_some()).count(), 5);
}

#[test]
fn device_spans_follow_the_levels() {
    let stream = device(0).stream(0);
    let recording = recording(Level::Stages);
    let lane = recording.profiler.lane("a", "cpu").enter();
    let step = || {
        let _stage = span!("stage", &stream);
        std::thread::sleep(ms(1));
        let _layer = span!("layer", &stream);
        std::thread::sleep(ms(1));
        stream.records()
    };
    assert_eq!(step(), 1, "the begin of the stage");
    set_level(Level::Off);
    assert_eq!(step(), 2, "its end, and nothing since");
    set_level(Level::Layers);
    assert_eq!(step(), 4);
    drop(lane);
    let (timeline, _) = recording.finish();
    assert_eq!((spans(&timeline, "stage").len(), spans(&timeline, "layer").len()), (2, 1));
}

#[test]
fn guards_in_the_wrong_order() {
    let device = device(0);
    let stream = device.stream(0);
    let recording = recording(Level::Layers);
    let lane = recording.profiler.lane("a", "cpu").enter();
    let outer = span!("outer", &stream);
    let inner = span!("inner", &stream);
    drop(outer);
    drop(inner);
    let left = span!("left", &stream);
    drop(lane);
    drop(left);
    let (timeline, totals) = recording.finish();
    assert_eq!((timeline.spans.len(), totals.misplaced, totals.unresolved), (1, 2, 0));
    assert!(spans(&timeline, "inner")[0].device.is_some());
    assert_eq!(device.live_events(), 0);
}

/// Its moment stayed "open" for the lane's whole life, and with it every later one in memory.
#[test]
fn a_guard_that_outlives_its_iteration_holds_nothing_back() {
    let device = device(0);
    let stream = device.stream(0);
    let recording = recording(Level::Layers);
    let lane = recording.profiler.lane("a", "cuda:0").enter();
    let iteration = begin_iteration(Kind::Train);
    let outlives = span!("outlives", &stream);
    drop(iteration);
    drop(outlives);
    for _ in 0..20 {
        let _iteration = begin_iteration(Kind::Train);
        let _span = span!("inside", &stream);
    }
    drop(lane);
    let (timeline, totals) = recording.finish();
    assert_eq!((totals.misplaced, totals.unresolved), (1, 0));
    assert!(spans(&timeline, "inside").iter().all(|span| span.device.is_some()));
    assert_eq!(device.live_events(), 0);
}

#[test]
fn two_lanes_on_one_stream_are_told_of() {
    let stream = device(0).stream(0);
    let recording = recording(Level::Stages);
    for name in ["target:0", "drafter:0", "drafter:0"] {
        let _lane = recording.profiler.lane(name, "cuda:0").enter();
        let _span = span!("work", &stream);
    }
    let (timeline, _) = recording.finish();
    let marks: Vec<&str> = timeline.marks.iter().map(|mark| mark.text.as_str()).collect();
    let told = "target:0 and drafter:0 work on the same stream of cuda:0: the device times of each include what the other did \
                there meanwhile";
    assert_eq!(marks, [told, told]);
}

/// Whether this process has a thread that asks devices.
fn collects() -> bool {
    let mut threads = std::fs::read_dir("/proc/self/task").unwrap();
    threads.any(|t| t.is_ok_and(|t| std::fs::read(t.path().join("comm")).is_ok_and(|name| name == b"dflash-device\n")))
}

#[test]
fn without_device_spans_there_is_no_collector() {
    let recording = recording(Level::Layers);
    let lane = recording.profiler.lane("a", "cpu").enter();
    drop(span!("a"));
    // That of the last test may still be on its way out; one of this recording would stay.
    let begin = Instant::now();
    while collects() {
        assert!(begin.elapsed() < Duration::from_secs(60), "there is a collector");
        std::thread::sleep(ms(1));
    }
    drop(lane);
    assert_eq!(recording.finish().1, Totals { emitted: 1, written: 1, ..Totals::default() });
}
