//! Losses are counted, lane by lane.

use std::thread;
use std::time::{Duration, Instant};

use dflash_profiler::timeline::record::{LaneId, Severity};
use dflash_profiler::{Kind, Level, begin_iteration, flow_put, span};

use crate::support::Recording;

#[test]
fn a_full_ring_drops_and_counts() {
    let recording = Recording::with(|options| {
        options.ring = 16;
        options.write_every = Duration::from_secs(60);
    });
    let lane = recording.profiler.lane("fast", "cpu").enter();
    for _ in 0..10_000 {
        let _span = span!("fast.step");
    }
    drop(lane);
    let (timeline, totals) = recording.finish();
    assert_eq!(totals.emitted, 10_000 + 1, "the spans and the warning");
    assert!(totals.dropped > 0 && totals.written >= 16, "{totals:?}");
    assert_eq!(timeline.spans.len() as u64 + 1, totals.written);
    let lane = &recording.profiler.lanes()[0];
    assert_eq!((lane.emitted, lane.written, lane.dropped), (10_000, timeline.spans.len() as u64, totals.dropped));
    assert_eq!(timeline.marks[0].severity, Severity::Warning);
    assert!(timeline.marks[0].text.contains("lane fast"), "{}", timeline.marks[0].text);
}

#[test]
fn eight_threads_at_once_lose_nothing() {
    let recording = Recording::start(Level::Layers);
    let depth = recording.profiler.counter("queue.depth", "items");
    thread::scope(|scope| {
        for number in 0..8 {
            let lane = recording.profiler.lane(&format!("lane:{number}"), "cpu");
            let depth = depth.clone();
            scope.spawn(move || {
                let _lane = lane.enter();
                for i in 0..500 {
                    let _iteration = begin_iteration(Kind::Train);
                    let _span = span!("lane.work");
                    let _inner = span!("lane.part", index = i);
                    depth.record(f64::from(i));
                }
            });
        }
    });
    let (timeline, totals) = recording.finish();
    assert_eq!(totals.dropped, 0);
    assert_eq!((timeline.spans.len(), timeline.iterations.len(), timeline.samples.len()), (8000, 4000, 4000));
    assert_eq!(timeline.lanes.len(), 8);
}

#[test]
fn a_thread_that_panics_leaves_its_spans() {
    let recording = Recording::start(Level::Stages);
    let lane = recording.profiler.lane("unlucky", "cpu");
    let thread = thread::spawn(move || {
        let _lane = lane.enter();
        let _iteration = begin_iteration(Kind::Train);
        let _span = span!("unlucky.step");
        panic!("on purpose");
    });
    assert!(thread.join().is_err());
    let (timeline, totals) = recording.finish();
    assert_eq!((timeline.spans.len(), timeline.iterations.len()), (1, 1));
    assert_eq!(totals.misplaced, 0);
}

/// Records of a lane, at least: many times what its ring holds.
const FLOOD: u64 = 100_000;

#[test]
fn every_lane_has_an_account_whatever_happens_to_it() {
    let recording = Recording::with(|options| {
        options.ring = 64;
        options.write_every = Duration::from_millis(1);
    });
    let begin = Instant::now();
    let spin = |name: &str, until: Duration| {
        let lane = recording.profiler.lane(name, "cpu");
        move || {
            let _lane = lane.enter();
            let mut made = 0;
            // Also where the machine stood still meanwhile: the writer cannot keep up with so many.
            while begin.elapsed() < until || made < FLOOD {
                let _iteration = begin_iteration(Kind::Train);
                for i in 0..50 {
                    let _span = span!("spin", index = i);
                    made += 1;
                }
                flow_put(made);
                made += 2;
            }
            made
        }
    };
    let second = Duration::from_millis(800);
    let (flooded, short) = (spin("flooded", second), spin("short", second / 4));
    let again = spin("short", second / 2);
    let unlucky = recording.profiler.lane("unlucky", "cpu");
    let made = thread::scope(|scope| {
        let flooded = scope.spawn(flooded);
        let short = scope.spawn(move || short() + again());
        let unlucky = scope.spawn(move || {
            let _lane = unlucky.enter();
            let _iteration = begin_iteration(Kind::Train);
            let _span = span!("unlucky");
            panic!("on purpose");
        });
        assert!(unlucky.join().is_err());
        [flooded.join().unwrap(), short.join().unwrap(), 2]
    });
    let (timeline, totals) = recording.finish();
    let lanes = recording.profiler.lanes();
    assert_eq!(lanes.iter().map(|lane| &lane.lane).collect::<Vec<_>>(), ["flooded", "short", "unlucky"]);
    assert_eq!(lanes.iter().map(|lane| lane.emitted).collect::<Vec<_>>(), made, "each record is counted once");
    for lane in &lanes {
        let lane_is = |id: LaneId| timeline.lane(id).is_some_and(|read| read.name == lane.lane);
        let read = timeline.spans.iter().filter(|span| lane_is(span.lane)).count()
            + timeline.iterations.iter().filter(|iteration| lane_is(iteration.lane)).count()
            + timeline.flows.iter().filter(|flow| lane_is(flow.lane)).count();
        assert_eq!(read as u64, lane.written, "{lane:?}");
    }
    assert!(lanes[0].dropped > 0, "the ring overflowed all the time: {lanes:?}");
    assert_eq!(lanes.iter().map(|lane| lane.dropped).sum::<u64>(), totals.dropped);
    assert_eq!(lanes[2].dropped, 0);
}

#[test]
fn what_a_lane_records_after_the_end_is_late() {
    let recording = Recording::start(Level::Stages);
    let lane = recording.profiler.lane("a", "cpu").enter();
    drop(span!("in.time"));
    let open = span!("open");
    let totals = recording.profiler.finish();
    assert_eq!((totals.emitted, totals.written, totals.open), (1, 1, 1));
    drop(open);
    drop(lane);
    assert_eq!(recording.profiler.lanes()[0].emitted, 1, "nobody counts any more");
    assert_eq!(recording.profiler.finish(), totals);
}

/// Resident memory, kilobytes.
fn resident_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
#[ignore = "a minute: make soak"]
fn a_ring_that_overflows_for_a_minute_takes_no_more_memory() {
    let recording = Recording::with(|options| options.ring = 1024);
    let lane = recording.profiler.lane("flood", "cpu").enter();
    let (begin, mut early_kb) = (Instant::now(), None);
    while begin.elapsed() < Duration::from_secs(62) {
        let _iteration = begin_iteration(Kind::Train);
        for i in 0..1_000 {
            let _span = span!("flood.step", index = i);
        }
        if begin.elapsed() > Duration::from_secs(5) {
            early_kb.get_or_insert_with(resident_kb);
        }
    }
    let (early_kb, late_kb) = (early_kb.unwrap(), resident_kb());
    assert!(late_kb < early_kb + 4_096, "{early_kb} kB have become {late_kb} kB");
    drop(lane);
    let (timeline, totals) = recording.finish();
    assert!(totals.dropped > totals.written, "{totals:?}");
    assert_eq!(timeline.marks.len(), 1, "it is said once: {:?}", timeline.marks);
}
