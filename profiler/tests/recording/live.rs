//! A recording that goes on, seen from outside.

use std::thread;
use std::time::{Duration, Instant};

use dflash_profiler::timeline::record::{FlowEnd, Severity};
use dflash_profiler::timeline::{Tail, Timeline};
use dflash_profiler::{Kind, Level, begin_iteration, flow_put, flow_take, span};

use crate::support::Recording;

/// Polls until the timeline is as wanted.
fn wait(tail: &mut Tail, wanted: impl Fn(&Timeline) -> bool) {
    let begin = Instant::now();
    while !wanted(tail.timeline()) {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", tail.timeline());
        thread::sleep(Duration::from_millis(5));
        tail.poll().unwrap();
    }
}

#[test]
fn open_spans_are_seen_while_they_last() {
    let recording = Recording::with(|options| {
        options.level = Level::Layers;
        options.write_every = Duration::from_millis(10);
    });
    let mut tail = Tail::open(&recording.run).unwrap();
    let lane = recording.profiler.lane("target:0", "cpu").enter();
    let outer = span!("target.forward");
    let inner = span!("target.layer", index = 3);
    let names = |timeline: &Timeline| -> Vec<String> {
        timeline.open.iter().map(|open| timeline.name(open.name).to_owned()).collect()
    };
    wait(&mut tail, |timeline| names(timeline) == ["target.forward", "target.layer"]);
    assert!(!tail.timeline().health.ended);
    assert_eq!(tail.timeline().totals.open, 2);
    drop(inner);
    wait(&mut tail, |timeline| names(timeline) == ["target.forward"] && timeline.spans.len() == 1);
    let (timeline, totals) = recording.finish();
    assert_eq!(totals.open, 1, "what is open at the end is said");
    assert_eq!(names(&timeline), ["target.forward"]);
    drop(outer);
    drop(lane);
    tail.poll().unwrap();
    assert_eq!(tail.timeline(), &timeline, "following gives what reading gives");
}

#[test]
fn counters_flows_and_marks() {
    let recording = Recording::start(Level::Stages);
    let depth = recording.profiler.counter("queue.batches.depth", "items");
    recording.profiler.counter("queue.batches.depth", "items").record(1.0);
    let lane = recording.profiler.lane("target:0", "cpu").enter();
    flow_put(7);
    drop(lane);
    let lane = recording.profiler.lane("drafter:0", "cuda:1").enter();
    flow_take(7);
    drop(lane);
    thread::spawn(move || depth.record(2.5)).join().unwrap();
    recording.profiler.mark(Severity::Info, "a note;\nof two lines");
    let (timeline, _) = recording.finish();
    assert_eq!(timeline.counters.len(), 1);
    assert_eq!(timeline.counters[0].unit, "items");
    assert_eq!(timeline.samples.iter().map(|s| s.value).collect::<Vec<_>>(), [1.0, 2.5]);
    let ends: Vec<_> = timeline.flows.iter().map(|f| (f.id, f.end, &timeline.lanes[f.lane.0 as usize].name)).collect();
    assert_eq!(ends, [(7, FlowEnd::Put, &"target:0".to_owned()), (7, FlowEnd::Take, &"drafter:0".to_owned())]);
    assert_eq!(timeline.marks[0].text, "a note;\nof two lines");
}

#[test]
fn the_profiler_samples_the_process_and_itself() {
    let recording = Recording::with(|options| options.sample_every = Some(Duration::from_millis(50)));
    let lane = recording.profiler.lane("a", "cpu").enter();
    let names = ["process.cpu", "process.rss", "thread.dflash-writer.cpu", "profiler.cpu", "profiler.bytes"];
    let values = |timeline: &Timeline, name: &str| -> Vec<f64> {
        let id = timeline.counters.iter().position(|c| c.name == name);
        timeline.samples.iter().filter(|s| Some(s.counter.0 as usize) == id).map(|s| s.value).collect()
    };
    let mut tail = Tail::open(&recording.run).unwrap();
    wait(&mut tail, |timeline| {
        let _iteration = begin_iteration(Kind::Train);
        names.iter().all(|name| values(timeline, name).len() > 1)
    });
    drop(lane);
    let (timeline, _) = recording.finish();
    for name in names {
        let values = values(&timeline, name);
        assert!(values.iter().all(|value| value.is_finite() && *value >= 0.0), "{name}: {values:?}");
    }
}

#[test]
fn what_holds_for_the_whole_recording_is_in_each_segment_that_is_kept() {
    let recording = Recording::with(|options| {
        options.level = Level::Off;
        options.write_every = Duration::from_millis(5);
        (options.stream.segment_bytes, options.stream.keep_bytes) = (16 << 10, Some(64 << 10));
    });
    recording.profiler.constant("queue.batches.capacity", "items", 3.0);
    recording.profiler.constant("queue.batches.capacity", "items", 8.0);
    let mut tail = Tail::open(&recording.run).unwrap();
    // Marks are kept at every level; these push the first segments out.
    let begin = Instant::now();
    while tail.timeline().expired.segments < 3 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", tail.timeline().expired);
        recording.profiler.mark(Severity::Info, &"x".repeat(4_000));
        thread::sleep(Duration::from_millis(2));
        tail.poll().unwrap();
    }
    let totals = recording.profiler.finish();
    assert_eq!(totals.emitted, totals.written + totals.dropped);
    let timeline = dflash_profiler::timeline::read(&recording.run).unwrap();
    let values: Vec<f64> = timeline.samples.iter().map(|sample| sample.value).collect();
    assert_eq!(timeline.counters[0].name, "queue.batches.capacity");
    assert!(!values.is_empty() && values.iter().all(|value| *value == 8.0), "{values:?}");
}
