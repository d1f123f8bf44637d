//! Samplers in a recording: what they write, under which names, and that they end.

#![cfg(feature = "spans")]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::fs;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use dflash_profiler::timeline::{Manifest, RunDir, Tail, Timeline, read};
use dflash_profiler::{Level, Options, Profiler};

/// Threads and the level are the process's, so one test records at a time.
static ALONE: Mutex<()> = Mutex::new(());

fn options(directory: &tempfile::TempDir) -> Options {
    let mut options = Options::new(RunDir::create(directory.path(), "test", Manifest::default()).unwrap());
    (options.level, options.sample_every) = (Level::Off, Some(Duration::from_millis(20)));
    options.write_every = Duration::from_millis(10);
    options
}

fn thread_lives(name: &str) -> bool {
    let names =
        fs::read_dir("/proc/self/task").unwrap().filter_map(|task| fs::read(task.ok()?.path().join("comm")).ok());
    names.into_iter().any(|found| found == format!("{name}\n").as_bytes())
}

/// Waits until something holds; a test that never sees it fails.
fn wait(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(120), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn values(timeline: &Timeline, name: &str) -> Vec<f64> {
    let Some(id) = timeline.counters.iter().position(|counter| counter.name == name) else { return Vec::new() };
    timeline.samples.iter().filter(|sample| sample.counter.0 as usize == id).map(|sample| sample.value).collect()
}

#[test]
fn they_record_at_level_off_and_account_for_themselves() {
    let _alone = ALONE.lock();
    let directory = tempfile::tempdir().unwrap();
    let options = options(&directory);
    let run = options.run.clone();
    let profiler = Profiler::start(options).unwrap();
    wait("the thread has its name", || thread_lives("dflash-procs"));
    let mut tail = Tail::open(&run).unwrap();
    wait("both samplers have worked", || {
        tail.poll().unwrap();
        values(tail.timeline(), "process.cpu").len() > 1 && !tail.timeline().marks.is_empty()
    });
    let totals = profiler.finish();
    wait("no thread stays", || !thread_lives("dflash-procs") && !thread_lives("dflash-nvml"));
    let timeline = read(&run).unwrap();
    assert_eq!(totals.emitted, totals.written + totals.dropped);
    assert_eq!((timeline.totals, totals.dropped), (totals, 0));
    for name in ["process.rss", "process.rss.peak", "process.switches.voluntary", "thread.dflash-procs.cpu"] {
        let values = values(&timeline, name);
        assert!(!values.is_empty() && values.iter().all(|value| *value >= 0.0), "{name}: {values:?}");
    }
    let cpu = values(&timeline, "profiler.procs.cpu");
    assert!(cpu.is_sorted() && cpu.last() > cpu.first(), "{cpu:?}");
    // Either there is NVML and it is introduced, or it is said once that there is none.
    let said = |words: &str| timeline.marks.iter().filter(|mark| mark.text.contains(words)).count();
    assert_eq!(said("no GPU is sampled") + said("NVML (driver"), 1, "{:?}", timeline.marks);
}

#[test]
fn a_lane_lends_its_name_to_its_thread() {
    let _alone = ALONE.lock();
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(&directory);
    options.nvml.every = None;
    let run = options.run.clone();
    let profiler = Profiler::start(options).unwrap();
    let lane = profiler.lane("drafter-trainer:0", "cpu");
    std::thread::spawn(move || {
        let _lane = lane.enter();
        let mut tail = Tail::open(&run).unwrap();
        wait("the thread is seen at work under the lane's name", || {
            tail.poll().unwrap();
            values(tail.timeline(), "thread.drafter-trainer:0.cpu").iter().any(|percent| *percent > 0.0)
        });
        assert_eq!(tail.timeline().marks, [], "nothing was asked of NVML");
    })
    .join()
    .unwrap();
    profiler.finish();
}

#[test]
fn without_samplers_there_are_no_threads() {
    let _alone = ALONE.lock();
    let directory = tempfile::tempdir().unwrap();
    let mut options = options(&directory);
    (options.sample_every, options.nvml.every) = (None, None);
    let profiler = Profiler::start(options).unwrap();
    wait("the writer runs", || thread_lives("dflash-writer"));
    // Those of the last test may still be on their way out; this recording's own would stay.
    wait("no sampler runs", || !thread_lives("dflash-procs") && !thread_lives("dflash-nvml"));
    assert_eq!(profiler.finish().emitted, 0);
}
