//! A tiny target, made-up texts, and a training on them.

use dflash_profiler::Profiler;
use dflash_profiler::timeline::MetricsWriter;
use dflash_trainer::TrainError;
use dflash_trainer::config::{Config, Dtype};
use dflash_trainer::drafter::{DFlashDrafter, DrafterConfig, Init};
use dflash_trainer::pipeline::{LaneReport, Observer, Outcome, Parts, Saving, Step, Text, choose_attention, run};
use dflash_trainer::target::Target;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use tch::{Device, Kind, Tensor};

/// A configuration for the tiny target; tests change it.
pub fn config() -> Config {
    let mut config = Config::default();
    (config.drafter.layers, config.drafter.block_size, config.drafter.mask_token_id) = (2, 4, 383);
    (config.train.steps, config.train.batch, config.train.anchors) = (7, 2, 5);
    config.train.learning_rate = 3e-3;
    config.profile.log_every = 3;
    config.pipeline.threads = 1;
    config.model.dtype = Dtype::Float32;
    config
}

/// Texts of different lengths, the same in each call; the last ones have too few supervised tokens for all anchors.
pub fn texts() -> Vec<Text> {
    let text = |i: usize| {
        let length = 9 + (i * 7) % 23;
        let id = |t: usize| ((i * 131 + t * t * 17 + t * 5) % 380) as i64;
        Text {
            ids: (0..length).map(id).collect(),
            loss_mask: (0..length).map(|t| t >= 3 + i % 5).collect(),
            ..Text::default()
        }
    };
    (0..11).map(text).collect()
}

/// What a training saw.
#[derive(Default)]
pub struct Log(pub Mutex<Vec<Step>>);

impl Observer for Log {
    fn step(&self, step: &Step) {
        self.0.lock().unwrap().push(step.clone());
    }

    fn lane(&self, _: &LaneReport) {}
}

/// A training, and what was read back of it.
pub struct Trained {
    pub weights: Vec<(String, Tensor)>,
    pub losses: Vec<f64>,
    pub metrics: String,
    pub lanes: Vec<String>,
    pub steps: usize,
}

/// Trains with so many targets and drafters on the CPU.
pub fn train(config: &Config, targets: usize, drafters: usize) -> Trained {
    train_on(config, &vec![Device::Cpu; targets], &vec![Device::Cpu; drafters], &texts())
}

/// Trains on any devices, on `texts`.
pub fn train_on(config: &Config, targets: &[Device], drafters: &[Device], texts: &[Text]) -> Trained {
    let dir = tempfile::tempdir().unwrap();
    let log = Log::default();
    let outcome = outcome_on(config, targets, drafters, texts, dir.path(), &log, &|| false).unwrap();
    let host = |t: &Tensor| t.detach().to_device(Device::Cpu).copy();
    let weights = outcome.drafter.parameters().iter().map(|(name, t)| (name.clone(), host(t))).collect();
    let mut lanes: Vec<_> = outcome.loop_seconds.iter().map(|(lane, _)| lane.clone()).collect();
    lanes.sort();
    let losses = log.0.lock().unwrap().iter().filter_map(|step| step.loss).collect();
    let metrics = std::fs::read_to_string(dir.path().join("metrics.csv")).unwrap();
    Trained { weights, losses, metrics, lanes, steps: outcome.steps }
}

/// As [`train`], with all that can be told.
pub fn outcome(
    config: &Config,
    targets: usize,
    drafters: usize,
    dir: &Path,
    log: &Log,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Outcome, TrainError> {
    outcome_of(config, (targets, drafters), &texts(), dir, log, stop)
}

/// As [`outcome`], on other texts.
pub fn outcome_of(
    config: &Config,
    (targets, drafters): (usize, usize),
    texts: &[Text],
    dir: &Path,
    log: &Log,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Outcome, TrainError> {
    outcome_on(config, &vec![Device::Cpu; targets], &vec![Device::Cpu; drafters], texts, dir, log, stop)
}

/// The tiny target's directory, also where the tests run elsewhere than they were built.
fn data() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/targets/qwen3");
    if built.exists() { built } else { PathBuf::from("tests/data/targets/qwen3") }
}

/// The tiny target.
pub fn target(device: Device) -> Target {
    Target::load(&data(), Kind::Float, device).unwrap()
}

/// As [`outcome_of`], on any devices, in the arithmetic that the configuration names.
pub fn outcome_on(
    config: &Config,
    targets: &[Device],
    drafters: &[Device],
    texts: &[Text],
    dir: &Path,
    log: &Log,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Outcome, TrainError> {
    let kind = dflash_trainer::device::kind(config.model.dtype, Device::Cpu);
    let targets: Vec<_> = targets.iter().map(|&device| Target::load(&data(), kind, device).unwrap()).collect();
    let shape = DrafterConfig::for_target(&targets[0].config, &config.drafter);
    let devices = targets.iter().map(Target::device).chain(drafters.iter().copied());
    choose_attention(config.train.attention, devices, (&targets[0].config, &shape, kind))?;
    run(Parts {
        config,
        samples: texts,
        targets,
        drafter: DFlashDrafter::fresh(&shape, Init { seed: 1, final_norm: 1.0 }, kind, Device::Cpu)
            .computed(&config.drafter),
        drafter_devices: drafters.to_vec(),
        profiler: &Profiler::disabled(),
        checkpoints: &dir.join("checkpoints"),
        observer: log,
        metrics: Some(MetricsWriter::open(&dir.join("metrics.csv"), config.drafter.block_size - 1).unwrap().into()),
        ranks: None,
        saving: Saving { attempt: 1, batches_per_step: 1, ..Saving::default() },
        resume: None,
        held_out: None,
        features: None,
        stop,
    })
}

/// The largest difference of two trainings' weights.
pub fn worst(a: &Trained, b: &Trained) -> f64 {
    worst_of(&a.weights, &b.weights)
}

/// The largest difference of weights.
pub fn worst_of(a: &[(String, Tensor)], b: &[(String, Tensor)]) -> f64 {
    let difference = |((name, a), (other, b)): (&(String, Tensor), &(String, Tensor))| {
        assert_eq!(name, other);
        (a - b).abs().max().double_value(&[])
    };
    a.iter().zip(b).map(difference).fold(0.0, f64::max)
}

/// Fails if `work` has not ended within two minutes, of which it needs a second: it is stuck.
pub fn never_stuck<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(work()));
    receive.recv_timeout(Duration::from_secs(120)).expect("it ended by a panic, or is stuck")
}
