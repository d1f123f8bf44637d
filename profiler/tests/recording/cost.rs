//! What the profiler costs, by its own account, and the limit on that.

use std::time::{Duration, Instant};

use dflash_profiler::sim::{SimClock, SimDevice, SimStream};
use dflash_profiler::timeline::record::Severity;
use dflash_profiler::timeline::{Timeline, read_iterations};
use dflash_profiler::{
    DeviceError, DeviceEvent, DeviceStream, Kind, Level, StreamKey, begin_iteration, flow_put, level, set_level, span,
    take_stats,
};

use crate::support::Recording;

fn spin(duration: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < duration {}
}

fn values(timeline: &Timeline, name: &str) -> Vec<f64> {
    let Some(id) = timeline.counters.iter().position(|c| c.name == name) else { return Vec::new() };
    timeline.samples.iter().filter(|s| s.counter.0 == id as u32).map(|s| s.value).collect()
}

#[test]
fn bare_iterations_record_themselves_and_their_hand_offs_alone() {
    let stream = SimDevice::new(0, SimClock::real()).stream(0);
    let recording = Recording::with(|options| {
        options.level = Level::Layers;
        (options.bare.pairs, options.bare.from, options.bare.every) = (5, 10, 1_000);
    });
    let lane = recording.profiler.lane("drafter:0", "cuda:0").enter();
    for number in 0..30 {
        let iteration = begin_iteration(Kind::Train);
        iteration.tokens(64);
        flow_put(number);
        let _stage = span!("stage", &stream);
        let _layer = span!("layer");
    }
    assert_eq!(take_stats().last().unwrap().count, 25, "bare ones are set apart here too");
    drop(lane);
    let (timeline, totals) = recording.finish();
    let bare: Vec<u64> = timeline.iterations.iter().filter(|i| i.kind == Kind::Bare).map(|i| i.number).collect();
    assert_eq!(bare.len(), 5);
    for pair in 0..5 {
        let of_pair = bare.iter().filter(|n| (10 + 2 * pair..12 + 2 * pair).contains(*n)).count();
        assert_eq!(of_pair, 1, "one of each pair: {bare:?}");
    }
    assert!(timeline.spans.iter().all(|span| !bare.contains(&span.iteration.unwrap())));
    assert_eq!((timeline.spans.len(), timeline.flows.len(), timeline.iterations.len()), (50, 30, 30));
    assert!(timeline.iterations.iter().all(|i| i.tokens == Some(64) && i.cpu_ns.is_some() == (i.kind == Kind::Train)));
    assert_eq!((totals.dropped, totals.misplaced), (0, 0), "what is left out is not lost");
    let rows = read_iterations(&recording.run.iterations_csv()).unwrap();
    let stages: Vec<&str> = rows.iter().filter(|row| row.kind == Kind::Bare).map(|row| row.stage.as_str()).collect();
    assert_eq!(stages, ["total"; 5], "neither stages nor a residue");
}

#[test]
fn other_kinds_are_never_bare() {
    let recording = Recording::with(|options| (options.bare.pairs, options.bare.from) = (50, 0));
    let lane = recording.profiler.lane("a", "cpu").enter();
    for number in 0..50 {
        let kind = [Kind::Warmup, Kind::Eval, Kind::Train][number % 3];
        let iteration = begin_iteration(kind);
        if number % 9 == 8 {
            iteration.kind(Kind::Checkpoint);
        }
        let _span = span!("stage");
    }
    drop(lane);
    let (timeline, _) = recording.finish();
    let count = |kind| timeline.iterations.iter().filter(|i| i.kind == kind).count();
    assert_eq!((count(Kind::Warmup), count(Kind::Eval), count(Kind::Checkpoint)), (17, 17, 5));
    assert!(count(Kind::Bare) > 0 && count(Kind::Train) + count(Kind::Bare) == 11);
}

#[test]
fn the_cost_is_in_the_stream() {
    let recording = Recording::with(|options| {
        options.sample_every = Some(Duration::from_millis(20));
        options.write_every = Duration::from_millis(10);
        options.max_overhead = f64::INFINITY;
        (options.bare.pairs, options.bare.from, options.bare.every) = (20, 0, 40);
    });
    let lane = recording.profiler.lane("worker:0", "cpu").enter();
    for _ in 0..80 {
        let _iteration = begin_iteration(Kind::Train);
        let _span = span!("stage");
        spin(Duration::from_millis(1));
    }
    let (timeline, _) = recording.finish();
    drop(lane);
    let [low, high, calls] =
        ["low", "high", "calls"].map(|what| values(&timeline, &format!("profiler.cost.worker:0.{what}")));
    assert!(!low.is_empty() && low.len() == high.len());
    assert!(low.iter().zip(&high).all(|(low, high)| low < high && *low > -100.0));
    assert!(!calls.is_empty() && calls.iter().all(|percent| (0.0..50.0).contains(percent)), "{calls:?}");
    assert!(values(&timeline, "profiler.cpu").iter().all(|ns| *ns > 0.0));
    assert!(values(&timeline, "profiler.bytes").last().unwrap() > &0.0);
}

/// A stream on which it takes the host 2 ms to record an event.
#[derive(Debug)]
struct Slow(SimStream);

impl DeviceStream for Slow {
    fn key(&self) -> StreamKey {
        self.0.key()
    }

    fn new_event(&self) -> Result<Box<dyn DeviceEvent>, DeviceError> {
        self.0.new_event()
    }

    fn record(&self, event: &mut dyn DeviceEvent) -> Result<(), DeviceError> {
        spin(Duration::from_millis(2));
        self.0.record(event)
    }

    fn side(&self) -> Result<Box<dyn DeviceStream>, DeviceError> {
        self.0.side()
    }
}

#[test]
fn instrumentation_that_costs_too_much_is_lowered_and_said() {
    let stream = Slow(SimDevice::new(0, SimClock::real()).stream(0));
    let recording = Recording::with(|options| {
        options.level = Level::Layers;
        options.max_overhead = 0.5;
        options.write_every = Duration::from_millis(5);
        options.device.stride_below = Duration::ZERO;
        (options.bare.pairs, options.bare.from, options.bare.every) = (20, 0, 40);
    });
    let lane = recording.profiler.lane("drafter:0", "cuda:0").enter();
    let step = || {
        let _iteration = begin_iteration(Kind::Train);
        let _stage = span!("stage");
        {
            let _layer = span!("layer", &stream);
            spin(Duration::from_micros(500));
        }
    };
    let begin = Instant::now();
    while level() == Level::Layers {
        step();
        assert!(begin.elapsed() < Duration::from_secs(60), "4 ms on top of 0.5 ms are not noticed");
    }
    assert_eq!(level(), Level::Stages);
    // Without the layers it costs little: it stays where it is.
    (0..200).for_each(|_| step());
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(level(), Level::Stages);
    // What somebody wants is not taken away again.
    set_level(Level::Layers);
    (0..60).for_each(|_| step());
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(level(), Level::Layers);
    drop(lane);
    let (timeline, _) = recording.finish();
    assert_eq!(timeline.marks.len(), 1, "{:?}", timeline.marks);
    let mark = &timeline.marks[0];
    assert_eq!(mark.severity, Severity::Warning);
    assert!(mark.text.contains("lane drafter:0") && mark.text.contains("50.00 %") && mark.text.contains("`stages`"));
}

#[test]
fn no_window_no_cost_by_pairs() {
    let recording = Recording::with(|options| options.sample_every = Some(Duration::from_millis(10)));
    let lane = recording.profiler.lane("a", "cpu").enter();
    for _ in 0..50 {
        let _iteration = begin_iteration(Kind::Train);
        spin(Duration::from_micros(100));
    }
    let (timeline, _) = recording.finish();
    drop(lane);
    assert!(values(&timeline, "profiler.cost.a.low").is_empty(), "not known is not 0");
    assert!(!values(&timeline, "profiler.cost.a.calls").is_empty());
}
