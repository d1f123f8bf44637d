//! Timelines without a training: lanes that go through their stages again and again, with a little variation.

use std::time::Duration;

use dflash_reports::timeline::record::{
    Anchor, Counter, CounterId, DeviceTime, Iteration, Kind, Lane, LaneId, NameId, OpenSpan, Sample, Span,
};
use dflash_reports::timeline::{Manifest, MetricsRow, State as RunState, Timeline};
use dflash_tui::state::{Input, Model, State, WindowLength};

/// When the monotonic clock stood at 0, nanoseconds since 1970.
const BOOT: i64 = 1_796_000_000_000_000_000;
const SECOND: i64 = 1_000_000_000;
/// Length of the recordings, nanoseconds.
const LENGTH: i64 = 40 * SECOND;

/// A stage with its usual milliseconds.
pub type Stage<'a> = (&'a str, f64);

pub const LOADER: &[Stage] =
    &[("load.read", 2.1), ("load.tokenize", 31.0), ("load.pack", 6.5), ("load.put", 101.0), ("residue", 0.4)];
pub const TARGET: &[Stage] = &[
    ("target.wait", 0.3),
    ("target.upload", 1.2),
    ("target.forward", 88.0),
    ("target.pack", 3.9),
    ("target.copy", 2.2),
    ("target.put", 44.0),
    ("residue", 0.9),
];
pub const DRAFTER: &[Stage] = &[
    ("drafter.wait", 2.4),
    ("drafter.upload", 0.9),
    ("drafter.anchors", 1.8),
    ("drafter.mask", 3.1),
    ("drafter.forward", 41.0),
    ("drafter.loss", 22.0),
    ("drafter.backward", 60.0),
    ("drafter.clip", 1.2),
    ("drafter.step", 7.4),
    ("drafter.log", 0.2),
    ("residue", 1.1),
];

/// A run to be shown.
pub struct Scene {
    pub name: String,
    pub manifest: Manifest,
    pub state: RunState,
    pub timeline: Timeline,
    pub metrics: Vec<MetricsRow>,
    pub problems: Vec<String>,
}

impl Scene {
    /// A live run with these lanes, half a second after its newest block.
    pub fn new(lanes: &[(&str, &str, &[Stage])]) -> Self {
        let mut timeline =
            Timeline { anchors: vec![Anchor { monotonic_ns: 0, realtime_ns: BOOT }], ..Timeline::default() };
        for (name, device, stages) in lanes {
            add_lane(&mut timeline, name, device, stages);
        }
        let mut manifest = Manifest::default();
        manifest.name = "demo".to_owned();
        manifest.host = "trainbox".to_owned();
        manifest.pid = 4242;
        manifest.started_unix_ns = BOOT - 60 * SECOND;
        let name = "20261130-120000-demo".to_owned();
        Self { name, manifest, state: RunState::Running, timeline, metrics: metrics(400), problems: Vec::new() }
    }

    /// Loader, target, drafter on the CPU, with two queues.
    pub fn pipeline() -> Self {
        let lanes = [("loader", "cpu", LOADER), ("target:0", "cpu", TARGET), ("drafter:0", "cpu", DRAFTER)];
        let mut scene = Self::new(&lanes);
        add_queue(&mut scene.timeline, "batches", 4.0, |t| 3.2 + (t / 3.0).sin());
        add_queue(&mut scene.timeline, "features", 8.0, |t| 6.0 + 2.0 * (t / 5.0).cos());
        scene
    }

    /// A loader, four targets and three drafters on GPUs.
    pub fn eight_lanes() -> Self {
        let names: Vec<String> =
            (0..4).map(|i| format!("target:{i}")).chain((0..3).map(|i| format!("drafter:{i}"))).collect();
        let devices: Vec<String> = (0..7).map(|i| format!("cuda:{i}")).collect();
        let mut lanes = vec![("loader", "cpu", LOADER)];
        lanes.extend(names.iter().zip(&devices).map(|(name, device)| {
            (name.as_str(), device.as_str(), if name.starts_with("target") { TARGET } else { DRAFTER })
        }));
        let mut scene = Self::new(&lanes);
        add_queue(&mut scene.timeline, "features", 16.0, |t| 15.0 + (t / 5.0).cos());
        scene
    }

    /// Names that try to drive the terminal, wide names, and numbers that no clock gives.
    pub fn hostile() -> Self {
        let stages: &[Stage] = &[("a\u{1b}[2J.wait", 10.0), ("目标.前进", 50.0), ("e\u{301}\u{202e}\n.put", 1.0)];
        let long = "drafter:".repeat(40);
        let mut scene =
            Self::new(&[("\u{1b}]0;owned\u{7}", "cu\0da", stages), ("目标目标目标目标目标目标:0", "", TARGET)]);
        add_lane(&mut scene.timeline, &long, &long, DRAFTER);
        add_queue(&mut scene.timeline, "\u{1b}[31m", f64::NAN, |t| if t > 20.0 { f64::INFINITY } else { -t });
        scene.name = "\u{1b}[?1049l\nrun".to_owned();
        scene.manifest.host = "a\tb".to_owned();
        scene.manifest.outcome = Some("\u{9b}2J".to_owned());
        scene.metrics[3].loss = Some(f64::NAN);
        scene.metrics[4].accuracy = Some(1e300);
        scene.problems = vec!["metrics.csv:3: \u{1b}[5m".to_owned()];
        scene
    }

    /// Ends the run as `state`, with or without the end of its stream.
    pub fn ended(mut self, state: RunState, whole: bool) -> Self {
        self.state = state;
        self.manifest.ended_unix_ns = Some(BOOT + LENGTH);
        self.timeline.health.ended = whole;
        self
    }

    pub fn model(&self, window: WindowLength) -> Model {
        let input = Input {
            name: &self.name,
            manifest: &self.manifest,
            state: self.state,
            here: true,
            timeline: &self.timeline,
            metrics: &self.metrics,
            problems: &self.problems,
            now_unix_ns: BOOT + LENGTH + SECOND / 2,
        };
        Model::new(&input, window)
    }

    pub fn show(&self) -> State {
        State::new(self.model(WindowLength::Minute), Duration::from_secs(1), WindowLength::Minute)
    }
}

fn add_lane(timeline: &mut Timeline, name: &str, device: &str, stages: &[Stage]) {
    let lane = LaneId(timeline.lanes.len() as u32);
    timeline.lanes.push(Lane { name: name.to_owned(), device: device.to_owned(), rank: 0 });
    let mut now = 0;
    for number in 0.. {
        let begin_ns = now;
        for (index, (stage, usual)) in stages.iter().enumerate() {
            let phase = number as f64 * 0.7 + index as f64 * 1.9 + f64::from(lane.0);
            let duration_ns = (usual * (1.0 + 0.2 * phase.sin()) * 1e6) as u64;
            if *stage != "residue" {
                let on_device = device.starts_with("cuda") && (stage.contains("ward") || stage.contains("loss"));
                let device = on_device.then_some(DeviceTime { begin_ns: now, duration_ns: duration_ns * 9 / 10 });
                let name = name_id(timeline, stage);
                let iteration = Some(number);
                timeline.spans.push(Span {
                    name,
                    lane,
                    iteration,
                    index: None,
                    depth: 0,
                    begin_ns: now,
                    duration_ns,
                    device,
                });
            }
            now += duration_ns as i64;
        }
        if now > LENGTH {
            timeline.spans.retain(|span| span.lane != lane || span.iteration != Some(number));
            let name = name_id(timeline, stages[1].0);
            timeline.open.push(OpenSpan { name, lane, begin_ns });
            return;
        }
        let duration_ns = now.abs_diff(begin_ns);
        let cpu_ns = Some(duration_ns * 7 / 10);
        let kind = if number == 0 { Kind::Warmup } else { Kind::Train };
        timeline.iterations.push(Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens: Some(512) });
    }
}

fn name_id(timeline: &mut Timeline, name: &str) -> NameId {
    let at = timeline.names.iter().position(|known| known == name).unwrap_or_else(|| {
        timeline.names.push(name.to_owned());
        timeline.names.len() - 1
    });
    NameId(at as u32)
}

fn add_queue(timeline: &mut Timeline, name: &str, capacity: f64, depth: impl Fn(f64) -> f64) {
    let first = timeline.counters.len() as u32;
    for part in ["depth", "capacity"] {
        let name = format!("queue.{name}.{part}");
        timeline.counters.push(Counter { name, unit: "items".to_owned(), rank: 0 });
    }
    timeline.samples.push(Sample { counter: CounterId(first + 1), time_ns: 0, value: capacity });
    for tick in 0..LENGTH / (SECOND / 10) {
        let value = depth(tick as f64 / 10.0).min(capacity).round();
        timeline.samples.push(Sample { counter: CounterId(first), time_ns: tick * SECOND / 10, value });
    }
    timeline.samples.sort_by_key(|sample| sample.time_ns);
}

fn metrics(steps: u64) -> Vec<MetricsRow> {
    let row = |step: u64| {
        let t = step as f64;
        let accuracy = 0.45 * (1.0 - (-t / 120.0).exp());
        MetricsRow {
            attempt: 1,
            step,
            time_ns: BOOT + step as i64 * SECOND / 10,
            loss: Some(2.1 + 7.2 * (-t / 60.0).exp() + 0.2 * (t * 1.3).sin()),
            accuracy: Some(accuracy),
            slots: vec![accuracy * 1.2, accuracy, accuracy * 0.7],
            learning_rate: Some(6e-4),
            gradient_norm: Some(0.8),
            acceptance_length: (step % 200 == 199).then_some(1.0 + 2.0 * accuracy),
            tokens_per_s: Some(3400.0),
            supervised_tokens_per_s: Some(1210.0),
        }
    };
    (0..steps).map(row).collect()
}
