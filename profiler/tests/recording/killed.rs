//! A process that is killed at any moment leaves all but the last quarter of a second, however far its device lags.

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use dflash_profiler::sim::{SimClock, SimDevice};
use dflash_profiler::timeline::record::{DeviceTime, Iteration, Span};
use dflash_profiler::timeline::{ReadOptions, RunDir, Tail, Timeline, Visit, read_iterations, visit};
use dflash_profiler::{Kind, Options, Profiler, begin_iteration, flow_put, span};

use crate::support::Recording;

const CHILD: &str = "DFLASH_TEST_KILLED_RUN";

/// What the child does: it trains until it is killed, and its device does nothing.
fn train(run: &Path) -> ! {
    let mut options = Options::new(RunDir::open(run).unwrap());
    (options.nvml.every, options.control, options.bare.pairs) = (None, false, 0);
    let profiler = Profiler::start(options).unwrap();
    let stream = SimDevice::new(0, SimClock::real()).stream(0);
    let steps = profiler.counter("steps", "steps");
    let _lane = profiler.lane("drafter:0", "cuda:0").enter();
    stream.work(Duration::from_secs(3_600));
    for step in 0.. {
        let _iteration = begin_iteration(Kind::Train);
        {
            let _span = span!("drafter.forward", &stream);
            std::thread::sleep(Duration::from_millis(5));
        }
        let _span = span!("drafter.log");
        flow_put(step);
        steps.record(step as f64);
    }
    unreachable!("it is killed")
}

/// Ends with the test, whatever becomes of it.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// First and last time that the counter beside the loop was heard of: it waits for no device.
fn heard(timeline: &Timeline) -> Option<(i64, i64)> {
    let steps = timeline.counters.iter().position(|counter| counter.name == "steps")?;
    let mut times = timeline.samples.iter().filter(|s| s.counter.0 as usize == steps).map(|s| s.time_ns);
    let first = times.next()?;
    Some((first, times.next_back()?))
}

#[test]
fn a_kill_costs_a_quarter_second_though_the_device_lags_by_more() {
    if let Some(run) = std::env::var_os(CHILD) {
        train(Path::new(&run));
    }
    let directory = tempfile::tempdir().unwrap();
    let run = RunDir::create(directory.path(), "killed", Default::default()).unwrap();
    let name = "killed::a_kill_costs_a_quarter_second_though_the_device_lags_by_more";
    let mut command = Command::new(std::env::current_exe().unwrap());
    let child = command.args(["--exact", name, "--nocapture"]).env(CHILD, run.path()).spawn().unwrap();
    let child = Killed(child);
    let mut tail = Tail::open(&run).unwrap();
    let begin = Instant::now();
    while heard(tail.timeline()).is_none_or(|(first, last)| last - first < 3_000_000_000) {
        assert!(begin.elapsed() < Duration::from_secs(120), "{:?}", heard(tail.timeline()));
        std::thread::sleep(Duration::from_millis(20));
        tail.poll().unwrap();
    }
    drop(child);
    let timeline = dflash_profiler::timeline::read(&run).unwrap();
    assert!(!timeline.health.ended);
    // The writer takes the lanes' records and the counters' in one pass, so that what it has heard of a counter says up
    // to when it has heard of the lane. A second: if this machine stops it between the two.
    let (_, heard_ns) = heard(&timeline).unwrap();
    let last = |kind: &str, end_ns: Option<i64>| {
        let end_ns = end_ns.unwrap_or_else(|| panic!("no {kind} was written before the kill"));
        assert!(end_ns > heard_ns - 1_250_000_000, "the last {kind} lies {} ns back", heard_ns - end_ns);
    };
    let end = |span: &Span| span.begin_ns + span.duration_ns as i64;
    last(
        "span with a stream",
        timeline.spans.iter().filter(|s| timeline.name(s.name) == "drafter.forward").map(end).max(),
    );
    last("iteration", timeline.iterations.iter().map(|i| i.begin_ns + i.duration_ns as i64).max());
    last("hand-off", timeline.flows.iter().map(|flow| flow.time_ns).max());
    let numbers: Vec<u64> = timeline.iterations.iter().map(|iteration| iteration.number).collect();
    assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "none is missing");
    assert_eq!(timeline.spans.iter().filter(|span| span.device.is_some()).count(), 0);
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
    stream.work(Duration::from_secs(2));
    let mut tail = Tail::open(&recording.run).unwrap();
    // Until the host's part of some is in the stream, as somebody sees who follows it.
    let begin = Instant::now();
    let mut steps = 0;
    while steps < 20 || tail.timeline().iterations.len() < 10 {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", tail.timeline());
        let _iteration = begin_iteration(Kind::Train);
        let _span = span!("drafter.forward", &stream);
        stream.work(Duration::from_micros(300));
        std::thread::sleep(Duration::from_millis(2));
        tail.poll().unwrap();
        steps += 1;
    }
    drop(lane);
    let without = tail.timeline().spans.iter().filter(|span| span.device.is_none()).count();
    let all_timed = |timeline: &Timeline| timeline.spans.iter().filter(|span| span.device.is_some()).count() == steps;
    while !all_timed(tail.timeline()) {
        assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", tail.timeline());
        std::thread::sleep(Duration::from_millis(5));
        tail.poll().unwrap();
    }
    let (timeline, totals) = recording.finish();
    tail.poll().unwrap();
    assert!(without > 0, "the host was ahead");
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
