//! Files that cannot be written, and what is said of that: nothing that fails reaches the program.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use dflash_profiler::timeline::{Manifest, RunDir, read};
use dflash_profiler::{Kind, Options, Profiler, begin_iteration, span};

use crate::support::{Recording, records};

/// How long anything may take on a machine that does other things too.
const PATIENCE: Duration = Duration::from_secs(120);

fn many_segments(options: &mut Options) {
    options.stream.segment_bytes = 1;
    options.write_every = Duration::from_millis(5);
}

/// The next segment cannot be created. (Removing a folder would race with the creation of one.)
fn take_the_directory_away(run: &RunDir) {
    fs::rename(run.timeline_dir(), run.path().join("gone")).unwrap();
}

/// Records until something has gone wrong.
fn until_there_is_trouble(profiler: &Profiler) {
    let _lane = profiler.lane("a", "cpu").enter();
    let begin = Instant::now();
    while profiler.trouble().is_none() {
        assert!(begin.elapsed() < PATIENCE, "nobody notices");
        let _span = span!("a.step");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_disk_that_fails_is_said_and_the_program_goes_on() {
    let recording = Recording::with(many_segments);
    let lane = recording.profiler.lane("a", "cpu").enter();
    let step = || {
        let _iteration = begin_iteration(Kind::Train);
        let _span = span!("a.step");
        thread::sleep(Duration::from_millis(1));
    };
    (0..20).for_each(|_| step());
    assert_eq!(recording.profiler.trouble(), None);
    take_the_directory_away(&recording.run);
    let begin = Instant::now();
    let mut steps = 20;
    while recording.profiler.trouble().is_none() {
        assert!(begin.elapsed() < PATIENCE, "nobody notices");
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
    assert_eq!(recording.run.manifest().unwrap().trouble, Some(trouble), "whoever comes later reads it there");
    let rows = dflash_profiler::timeline::read_iterations(&recording.run.iterations_csv()).unwrap();
    assert_eq!(rows.len() as u64, steps * 3, "iterations.csv is another file, and whole");
}

#[test]
fn what_run_json_cannot_take_at_once_it_takes_at_the_end() {
    let recording = Recording::with(many_segments);
    let (run_json, aside) = (recording.run.path().join("run.json"), recording.run.path().join("aside"));
    fs::rename(&run_json, &aside).unwrap();
    take_the_directory_away(&recording.run);
    until_there_is_trouble(&recording.profiler);
    assert!(!run_json.exists());
    fs::rename(&aside, &run_json).unwrap();
    recording.profiler.finish();
    let noted = recording.run.manifest().unwrap().trouble;
    assert!(noted.is_some() && noted == recording.profiler.trouble(), "{noted:?}");
}

/// run.json is rank 0's: two processes that replace it would undo each other's changes.
#[test]
fn another_rank_leaves_run_json_alone_and_notes_its_trouble_beside_its_segments() {
    let recording = Recording::with(|options| {
        many_segments(options);
        options.rank = 1;
    });
    let spare = recording.run.timeline_dir().join(".rank1.trouble.json.spare");
    assert!(fs::metadata(&spare).unwrap().len() > 0, "there is room for it on a full disk");
    take_the_directory_away(&recording.run);
    until_there_is_trouble(&recording.profiler);
    fs::rename(recording.run.path().join("gone"), recording.run.timeline_dir()).unwrap();
    recording.profiler.finish();
    assert_eq!(recording.run.manifest().unwrap().trouble, None);
    let trouble = recording.profiler.trouble().unwrap();
    assert!(trouble.contains("rank1-"), "{trouble}");
    assert_eq!(recording.run.trouble_of_ranks(1, None), Some(format!("rank 1: {trouble}")));
    assert_eq!(recording.run.trouble_of_ranks(2, None), None, "it is about the first attempt");
    assert!(!spare.exists());
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
            assert!(begin.elapsed() < PATIENCE, "{} segments of {wanted}", segments());
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
fn a_run_that_cannot_be_written_is_an_error_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let run = RunDir::create(directory.path(), "x", Manifest::default()).unwrap();
    fs::remove_dir_all(run.path()).unwrap();
    fs::write(run.path(), "a file").unwrap();
    let error = Profiler::start(Options::new(run)).unwrap_err();
    assert!(error.to_string().contains("timeline: cannot create it"), "{error}");
}
