//! Timelines without a training: lanes that go through their stages again and again, with a little variation.

mod parts;

use std::time::Duration;

use dflash_reports::timeline::record::{Anchor, CounterId, Mark, Sample, Severity};
use dflash_reports::timeline::{Manifest, MetricsRow, State as RunState, Timeline};
use dflash_tui::state::{Action, Input, Look, Model, State, View, WindowLength};
use parts::{add_flows, add_gpu, add_lane, add_marks, add_queue, add_sample_counter, add_threads};

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
        add_threads(&mut scene.timeline);
        add_flows(&mut scene.timeline);
        add_marks(&mut scene.timeline);
        scene.sorted()
    }

    /// A loader, and half targets and half drafters, one on each of `count` GPUs, with their sensors.
    pub fn gpus(count: usize) -> Self {
        let slow = |stages: &[Stage<'static>]| -> Vec<Stage<'static>> {
            // Many lanes go slower here, so that building them does not.
            let factor = if count > 16 { 12.0 } else { 1.0 };
            stages.iter().map(|(name, ms)| (*name, ms * factor)).collect()
        };
        let (target, drafter) = (slow(TARGET), slow(DRAFTER));
        let targets = count / 2;
        let mut scene = Self::new(&[("loader", "cpu", LOADER)]);
        for gpu in 0..count {
            let (name, stages) = match gpu.checked_sub(targets) {
                None => (format!("target:{gpu}"), &target),
                Some(drafter_index) => (format!("drafter:{drafter_index}"), &drafter),
            };
            add_lane(&mut scene.timeline, &name, &format!("cuda:{gpu}"), stages);
        }
        add_queue(&mut scene.timeline, "features", 16.0, |t| 15.0 + (t / 5.0).cos());
        for gpu in 0..count {
            add_gpu(&mut scene.timeline, gpu);
        }
        add_threads(&mut scene.timeline);
        add_flows(&mut scene.timeline);
        add_marks(&mut scene.timeline);
        scene.sorted()
    }

    /// GPUs without a run.
    pub fn alone(count: usize) -> Self {
        let mut scene =
            Self { metrics: Vec::new(), name: String::new(), manifest: Manifest::default(), ..Self::new(&[]) };
        (scene.manifest.host, scene.manifest.pid) = ("trainbox".to_owned(), 0);
        (0..count).for_each(|gpu| add_gpu(&mut scene.timeline, gpu));
        scene.sorted()
    }

    /// Cuts off a GPU's readings after 20 s: it is lost.
    pub fn losing(mut self, device: &str) -> Self {
        let prefix = format!("gpu.{device}.");
        let its = |counter: CounterId| self.timeline.counters[counter.0 as usize].name.starts_with(&prefix);
        let kept: Vec<Sample> =
            self.timeline.samples.iter().filter(|s| !its(s.counter) || s.time_ns < 20 * SECOND).copied().collect();
        self.timeline.samples = kept;
        self
    }

    /// Takes a sensor away from a GPU, as a divided one (MIG) lacks its utilisation.
    pub fn lacking(mut self, device: &str, sensor: &str) -> Self {
        let name = format!("gpu.{device}.{sensor}");
        let its = |counter: CounterId| self.timeline.counters[counter.0 as usize].name == name;
        let kept: Vec<Sample> = self.timeline.samples.iter().filter(|s| !its(s.counter)).copied().collect();
        self.timeline.samples = kept;
        self
    }

    /// A mark at 30 s.
    pub fn marked(mut self, severity: Severity, text: &str) -> Self {
        self.timeline.marks.push(Mark { time_ns: 30 * SECOND, severity, text: text.to_owned() });
        self.sorted()
    }

    fn sorted(mut self) -> Self {
        self.timeline.samples.sort_by_key(|sample| sample.time_ns);
        self.timeline.flows.sort_by_key(|flow| flow.time_ns);
        self.timeline.marks.sort_by_key(|mark| mark.time_ns);
        self
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
        add_sample_counter(&mut scene.timeline, "thread.\u{1b}[7m\u{200b}.cpu", "%", |_| f64::MAX);
        add_sample_counter(&mut scene.timeline, "gpu.cu\u{9b}31mda.power", "W", |_| -1e300);
        add_sample_counter(&mut scene.timeline, "gpu.cu\u{9b}31mda.throttle", "bits", |_| f64::NAN);
        scene.marked(Severity::Warning, "\u{1b}]52;c;aGk=\u{7} a mark that sets the clipboard 目标")
    }

    /// Ends the run as `state`, with or without the end of its stream.
    pub fn ended(mut self, state: RunState, whole: bool) -> Self {
        self.state = state;
        self.manifest.ended_unix_ns = Some(BOOT + LENGTH);
        self.timeline.health.ended = whole;
        self
    }

    pub fn model(&self, look: &Look) -> Model {
        let input = Input {
            name: &self.name,
            manifest: &self.manifest,
            state: self.state,
            here: true,
            timeline: &self.timeline,
            extent_ns: None,
            metrics: &self.metrics,
            logged: Some(self.metrics.len() as u64),
            problems: &self.problems,
            now_unix_ns: BOOT + LENGTH + SECOND / 2,
        };
        Model::new(&input, look)
    }

    pub fn show(&self) -> State {
        let mut state = State::new(Model::default(), Duration::from_secs(1), WindowLength::Minute);
        self.refresh(&mut state);
        state
    }

    pub fn show_view(&self, view: View) -> State {
        let mut state = self.show();
        state.apply(Action::Show(view));
        self.refresh(&mut state);
        state
    }

    /// What the loop does when the numbers are wanted anew.
    pub fn refresh(&self, state: &mut State) {
        state.model = self.model(&state.look());
    }
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
            ..MetricsRow::default()
        }
    };
    (0..steps).map(row).collect()
}
