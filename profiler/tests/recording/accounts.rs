//! Losses are counted, and nothing that fails reaches the program.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use dflash_profiler::sim::{SimClock, SimDevice};
use dflash_profiler::timeline::record::{LaneId, Severity};
use dflash_profiler::timeline::{Manifest, RunDir, read};
use dflash_profiler::{Kind, Level, Options, Profiler, begin_iteration, flow_put, span};

use crate::support::{Recording, records};

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

#[test]
fn a_disk_that_fails_is_said_and_the_program_goes_on() {
    let recording = Recording::with(|options| {
        options.stream.segment_bytes = 1;
        options.write_every = Duration::from_millis(5);
    });
    let lane = recording.profiler.lane("a", "cpu").enter();
    let step = || {
        let _iteration = begin_iteration(Kind::Train);
        let _span = span!("a.step");
        thread::sleep(Duration::from_millis(1));
    };
    (0..20).for_each(|_| step());
    assert_eq!(recording.profiler.trouble(), None);
    // The next segment cannot be created. (Removing a folder would race with the creation of one.)
    fs::rename(recording.run.timeline_dir(), recording.run.path().join("gone")).unwrap();
    let begin = Instant::now();
    let mut steps = 20;
    while recording.profiler.trouble().is_none() {
        assert!(begin.elapsed() < Duration::from_secs(30), "nobody notices");
        step();
        steps += 1;
    }
    (0..20).for_each(|_| step());
    steps += 20;
    drop(lane);
    let totals = recording.profiler.finish();
    assert_eq!(totals.emitted, 2 * steps);
    assert!(totals.dropped >= 40, "{totals:?}");
    let lane = &recording.profiler.lanes()[0];
    assert_eq!((lane.emitted, lane.written, lane.dropped), (2 * steps, totals.written, totals.dropped));
    let trouble = recording.profiler.trouble().unwrap();
    assert!(trouble.contains("the timeline is no longer written") && trouble.contains("rank0-"), "{trouble}");
    let rows = dflash_profiler::timeline::read_iterations(&recording.run.iterations_csv()).unwrap();
    assert_eq!(rows.len() as u64, steps * 3, "iterations.csv is another file, and whole");
}

#[test]
fn segments_rotate_and_attempts_follow_each_other() {
    let recording = Recording::with(|options| {
        options.stream.segment_bytes = 200;
        options.write_every = Duration::from_millis(2);
    });
    let segments = || fs::read_dir(recording.run.timeline_dir()).unwrap().count();
    let work = |profiler: &Profiler, more: usize| {
        let _lane = profiler.lane("a", "cpu").enter();
        let (begin, wanted) = (Instant::now(), segments() + more);
        while segments() < wanted {
            let _span = span!("a.step");
            thread::sleep(Duration::from_millis(1));
            assert!(begin.elapsed() < Duration::from_secs(30), "{} segments of {wanted}", segments());
        }
    };
    work(&recording.profiler, 3);
    let (_, first) = recording.finish();

    let mut options = Options::new(recording.run.clone());
    (options.attempt, options.sample_every, options.stream.segment_bytes) = (2, None, 200);
    options.nvml.every = None;
    options.write_every = Duration::from_millis(2);
    let second = Profiler::start(options).unwrap();
    work(&second, 2);
    let second = second.finish();
    let timeline = read(&recording.run).unwrap();
    assert_eq!(timeline.spans.len() as u64, first.written + second.written);
    assert_eq!(timeline.totals.written, first.written + second.written);
    assert_eq!(records(&timeline), timeline.totals.written);
    assert!(timeline.health.ended && timeline.health.problems.is_empty(), "{:?}", timeline.health);
}

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
            while begin.elapsed() < until {
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

#[test]
fn a_forked_child_writes_nothing_and_ends() {
    let recording = Recording::with(|options| {
        options.write_every = Duration::from_millis(5);
        options.level = Level::Layers;
    });
    let lane = recording.profiler.lane("a", "cpu").enter();
    let step = || {
        let _iteration = begin_iteration(Kind::Train);
        let _span = span!("step");
    };
    step();
    let open = span!("around.the.fork");
    let stream = SimDevice::new(0, SimClock::real()).stream(0);
    let mut on_device = Some(span!("on.a.device", &stream));
    let before = stream.records();
    for _ in 0..3 {
        let profiler = recording.profiler.clone();
        let code = dflash_sys::fork_and_wait(Duration::from_secs(30), || {
            // A child that goes on as if nothing had happened.
            let off = dflash_profiler::level() == Level::Off;
            (0..1_000).for_each(|_| step());
            drop(on_device.take());
            let untouched = stream.records() == before;
            profiler.mark(Severity::Info, "of the child");
            u8::from(off && untouched && profiler.finish() == dflash_profiler::Totals::default())
        });
        assert_eq!(code.unwrap(), 1);
    }
    drop(on_device);
    drop(open);
    step();
    let sleep = std::process::Command::new("true").status().unwrap();
    assert!(sleep.success());
    drop(lane);
    let (timeline, totals) = recording.finish();
    assert_eq!((timeline.spans.len(), timeline.iterations.len(), timeline.marks.len()), (4, 2, 0));
    assert_eq!(totals.dropped, 0);
}

#[test]
fn a_program_that_is_started_does_not_get_the_stream() {
    let recording = Recording::start(Level::Stages);
    let listed = std::process::Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
    assert!(listed.status.success());
    let listed = String::from_utf8_lossy(&listed.stdout);
    assert!(!listed.contains(".dft") && !listed.contains("iterations.csv"), "{listed}");
    recording.finish();
}

#[test]
fn a_run_that_cannot_be_written_is_an_error_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let run = RunDir::create(directory.path(), "x", Manifest::default()).unwrap();
    fs::remove_dir_all(run.path()).unwrap();
    fs::write(run.path(), "a file").unwrap();
    let error = Profiler::start(Options::new(run)).unwrap_err();
    assert!(error.to_string().contains("timeline: cannot create it"), "{error}");
}
