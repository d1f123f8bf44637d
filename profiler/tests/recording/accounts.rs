//! Losses are counted, and nothing that fails reaches the program.

use std::fs;
use std::thread;
use std::time::Duration;

use dflash_profiler::timeline::record::Severity;
use dflash_profiler::timeline::{Manifest, RunDir, read};
use dflash_profiler::{Kind, Level, Options, Profiler, begin_iteration, span};

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
        options.segment_bytes = 1;
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
    // The next segment cannot be created.
    fs::remove_dir_all(recording.run.timeline_dir()).unwrap();
    (0..50).for_each(|_| step());
    drop(lane);
    let (_, totals) = recording.finish();
    assert_eq!(totals.emitted, 140);
    assert!(totals.dropped >= 40, "{totals:?}");
    let trouble = recording.profiler.trouble().unwrap();
    assert!(trouble.contains("the timeline is no longer written") && trouble.contains("rank0-"), "{trouble}");
    let rows = dflash_profiler::timeline::read_iterations(&recording.run.iterations_csv()).unwrap();
    assert_eq!(rows.len(), 70 * 3, "iterations.csv is another file, and whole");
}

#[test]
fn segments_rotate_and_attempts_follow_each_other() {
    let recording = Recording::with(|options| {
        options.segment_bytes = 200;
        options.write_every = Duration::from_millis(2);
    });
    let work = |profiler: &Profiler| {
        let _lane = profiler.lane("a", "cpu").enter();
        for _ in 0..30 {
            let _span = span!("a.step");
            thread::sleep(Duration::from_millis(1));
        }
    };
    work(&recording.profiler);
    let (_, first) = recording.finish();
    assert!(fs::read_dir(recording.run.timeline_dir()).unwrap().count() > 2);

    let mut options = Options::new(recording.run.clone());
    (options.attempt, options.sample_every) = (2, None);
    let second = Profiler::start(options).unwrap();
    work(&second);
    let second = second.finish();
    let timeline = read(&recording.run).unwrap();
    assert_eq!(timeline.spans.len(), 60);
    assert_eq!(timeline.totals.written, first.written + second.written);
    assert_eq!(records(&timeline), timeline.totals.written);
    assert!(timeline.health.ended && timeline.health.problems.is_empty(), "{:?}", timeline.health);
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
