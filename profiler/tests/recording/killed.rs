//! A process that is killed at any moment leaves all but the last quarter of a second, however far its device lags.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use dflash_profiler::sim::{SimClock, SimDevice};
use dflash_profiler::timeline::record::{DeviceTime, Iteration, Span};
use dflash_profiler::timeline::{ReadOptions, RunDir, Tail, Timeline, Visit, read, read_iterations, visit};
use dflash_profiler::{Kind, Options, Profiler, begin_iteration, flow_put, span};

use crate::support::Recording;

const CHILD: &str = "DFLASH_TEST_KILLED_RUN";
/// What a kill may cost.
const MOST_LOST_NS: u64 = 250_000_000;
/// Processes that are killed, and how many of them run at once.
const KILLS: [usize; 2] = [6, 4];
const PATIENCE: Duration = Duration::from_secs(120);

/// What the child does: it trains until it is killed, and its device does nothing. It notes each step once that is recorded.
fn train(run: &Path) -> ! {
    let mut options = Options::new(RunDir::open(run).unwrap());
    (options.nvml.every, options.control, options.bare.pairs) = (None, false, 0);
    let profiler = Profiler::start(options).unwrap();
    let stream = SimDevice::new(0, SimClock::real()).stream(0);
    let steps = profiler.counter("steps", "steps");
    let _lane = profiler.lane("drafter:0", "cuda:0").enter();
    stream.work(Duration::from_secs(3_600));
    let mut notes = File::create(notes(run)).unwrap();
    let of_writer = std::iter::repeat_with(|| writer("self")).flatten().next().unwrap();
    for step in 0.. {
        {
            let _iteration = begin_iteration(Kind::Train);
            let _span = span!("drafter.forward", &stream);
            thread::sleep(Duration::from_millis(5));
            flow_put(step);
        }
        steps.record(step as f64);
        let withheld = withheld_ns(&of_writer);
        // Complete or not there: it is one write.
        notes.write_all(format!("{} {withheld}\n", dflash_sys::monotonic_ns()).as_bytes()).unwrap();
    }
    unreachable!("it is killed")
}

/// Where the child notes its steps, one a line: by when it was recorded, and what was withheld by then.
fn notes(run: &Path) -> PathBuf {
    run.join("notes")
}

/// The directory in /proc of a process's thread that writes the timeline.
fn writer(process: &str) -> Option<PathBuf> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap().map(|task| task.unwrap().path());
    tasks.into_iter().find(|task| fs::read_to_string(task.join("comm")).is_ok_and(|name| name == "dflash-writer\n"))
}

/// For how long this thread was ready to run and had to wait, since it began; and the whole machine for its host, which
/// counts in hundredths of a second, of all processors.
fn withheld_ns(task: &Path) -> u64 {
    let number = |text: &str, place: usize| text.split_whitespace().nth(place).unwrap().parse::<u64>().unwrap();
    let stolen = number(&fs::read_to_string("/proc/stat").unwrap(), 8);
    number(&fs::read_to_string(task.join("schedstat")).unwrap(), 1) + stolen * 10_000_000
}

/// Ends with the test, whatever becomes of it.
struct Killed(Child);

impl Killed {
    /// Stops it for ever, all of it at once, and says what was withheld from its writer. What is stopped can still be asked.
    fn stop(&self) -> u64 {
        let process = self.0.id().to_string();
        assert!(Command::new("kill").args(["-STOP", &process]).status().unwrap().success());
        let writer = writer(&process).unwrap();
        let begin = Instant::now();
        while !fs::read_to_string(writer.join("stat")).unwrap().contains(") T ") {
            assert!(begin.elapsed() < PATIENCE, "it does not stop");
            thread::sleep(Duration::from_millis(1));
        }
        withheld_ns(&writer)
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The steps of which each kind of record is readable.
fn readable(timeline: &Timeline) -> [(&'static str, BTreeSet<u64>); 4] {
    let spans = timeline.spans.iter().filter(|span| timeline.name(span.name) == "drafter.forward");
    let counter = timeline.counters.iter().position(|counter| counter.name == "steps");
    let samples = timeline.samples.iter().filter(|sample| Some(sample.counter.0 as usize) == counter);
    [
        ("span", spans.filter_map(|span| span.iteration).collect()),
        ("iteration", timeline.iterations.iter().map(|iteration| iteration.number).collect()),
        ("hand-off", timeline.flows.iter().map(|flow| flow.id).collect()),
        ("sample", samples.map(|sample| sample.value as u64).collect()),
    ]
}

/// How long it lived from the first of these notes on: at least until the last. A step takes 5 ms; where the next note came
/// much later the whole machine may have stood still, and nobody says so.
fn lived_ns(noted: &[[u64; 2]]) -> u64 {
    noted.windows(2).map(|next| (next[1][0] - next[0][0]).min(50_000_000)).sum()
}

/// Kills one after so long, and sees what is left.
fn kill_one(after: Duration) {
    // In memory, where there is such a place: a disk may hold up who writes for longer than all of this takes.
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let directory = tempfile::tempdir_in(parent).unwrap();
    let run = RunDir::create(directory.path(), "killed", Default::default()).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    let name = "killed::a_kill_at_any_moment_costs_a_quarter_second_at_most";
    let child = Killed(command.args(["--exact", name, "--nocapture"]).env(CHILD, run.path()).spawn().unwrap());
    let begin = Instant::now();
    while fs::read_to_string(notes(run.path())).map_or_else(|e| e.kind() == ErrorKind::NotFound, |text| text.is_empty())
    {
        assert!(begin.elapsed() < PATIENCE, "it does not begin");
        thread::sleep(Duration::from_millis(1));
    }
    thread::sleep(after);
    let withheld_at_end = child.stop();
    drop(child);
    let noted = fs::read_to_string(notes(run.path())).unwrap();
    let noted: Vec<[u64; 2]> = noted
        .lines()
        .map(|line| line.split_once(' ').unwrap())
        .map(|(time, withheld)| [time, withheld].map(|text| text.parse().unwrap()))
        .collect();
    let timeline = read(&run).unwrap();
    assert!(!timeline.health.ended);
    assert_eq!(timeline.spans.iter().filter(|span| span.device.is_some()).count(), 0, "its device does nothing");
    for (kind, steps) in readable(&timeline) {
        let whole = (0..).zip(&steps).take_while(|(number, step)| number == *step).count();
        assert_eq!(whole, steps.len(), "a {kind} is missing among those that were written: {steps:?}");
        let Some([_, withheld]) = noted.get(whole) else { continue };
        let (lost, withheld) = (lived_ns(&noted[whole..]), withheld_at_end - withheld);
        assert!(
            lost <= MOST_LOST_NS + withheld,
            "after {after:?}: from the first {kind} lost {lost} ns, of these {withheld} withheld by the machine"
        );
    }
}

#[test]
fn a_kill_at_any_moment_costs_a_quarter_second_at_most() {
    if let Some(run) = std::env::var_os(CHILD) {
        train(Path::new(&run));
    }
    if fs::read_to_string("/proc/self/schedstat").is_err() {
        println!("skipped: this system does not say how long a thread waited until it ran");
        return;
    }
    let [rounds, at_once] = KILLS;
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| (0..rounds).for_each(|_| kill_one(moment())));
        }
    });
}

/// At random, from the beginning to some blocks later.
fn moment() -> Duration {
    Duration::from_micros(RandomState::new().hash_one(()) % 1_500_000)
}

/// Spans and iterations as a visitor gets them.
#[derive(Default)]
struct Shown(Vec<(i64, Option<DeviceTime>)>, Vec<(usize, u64)>);

impl Visit for Shown {
    fn span(&mut self, span: Span) {
        self.0.push((span.begin_ns, span.device));
    }

    fn iteration(&mut self, iteration: Iteration) {
        self.1.push((self.0.len(), iteration.number));
    }
}

#[test]
fn a_device_time_that_comes_later_is_its_spans() {
    let device = SimDevice::new(0, SimClock::real());
    let stream = device.stream(0);
    let recording = Recording::with(|options| {
        options.write_every = Duration::from_millis(5);
        options.device.stride_below = Duration::ZERO;
    });
    let lane = recording.profiler.lane("drafter:0", "cuda:0").enter();
    let mut tail = Tail::open(&recording.run).unwrap();
    // Until the host's part of some is in the stream, as somebody sees who follows it.
    let any_untimed = |timeline: &Timeline| timeline.spans.iter().any(|span| span.device.is_none());
    let begin = Instant::now();
    let mut steps = 0;
    while steps < 20 || tail.timeline().iterations.len() < 10 || !any_untimed(tail.timeline()) {
        // The host stays ahead, also where all stood still for a while.
        if stream.free_ns() < dflash_sys::monotonic_ns() + 500_000_000 {
            stream.work(Duration::from_secs(2));
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", tail.timeline());
        let _iteration = begin_iteration(Kind::Train);
        let _span = span!("drafter.forward", &stream);
        stream.work(Duration::from_micros(300));
        std::thread::sleep(Duration::from_millis(2));
        tail.poll().unwrap();
        steps += 1;
    }
    drop(lane);
    let all_timed = |timeline: &Timeline| timeline.spans.iter().filter(|span| span.device.is_some()).count() == steps;
    while !all_timed(tail.timeline()) {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", tail.timeline());
        std::thread::sleep(Duration::from_millis(5));
        tail.poll().unwrap();
    }
    let (timeline, totals) = recording.finish();
    tail.poll().unwrap();
    assert_eq!((timeline.spans.len(), timeline.iterations.len(), totals.unresolved), (steps, steps, 0));
    assert!(all_timed(&timeline));
    assert_eq!(tail.timeline().spans, timeline.spans, "following gives what reading gives");
    let mut shown = Shown::default();
    visit(&recording.run, &ReadOptions::default(), &mut shown).unwrap();
    assert_eq!(shown.0, timeline.spans.iter().map(|span| (span.begin_ns, span.device)).collect::<Vec<_>>());
    assert_eq!(shown.1, (0..steps).map(|n| (n + 1, n as u64)).collect::<Vec<_>>(), "the lane's order stays");
    let rows = read_iterations(&recording.run.iterations_csv()).unwrap();
    let stages: Vec<_> = rows.iter().filter(|row| row.stage == "drafter.forward").collect();
    assert_eq!(stages.len(), steps);
    assert!(stages.iter().all(|row| row.device_ns.is_some()), "{stages:?}");
}
