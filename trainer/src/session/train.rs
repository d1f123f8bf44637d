//! A training run from its configuration to its exported drafter, all of it recorded in a run directory.

use super::record::start_profiler;
use super::simulate::simulate;
use crate::TextTools;
use crate::config::{Config, DeviceChoice};
use crate::data::{PreloadedDataset, cached};
use crate::device;
use crate::drafter::{self, DFlashDrafter, DrafterConfig, Init};
use crate::error::TrainError;
use crate::guards::{self, Subject};
use crate::pipeline::lane::cause_text;
use crate::pipeline::{self, Observer, Parts, Stop, Text};
use crate::prepare;
use crate::target::{Target, TargetConfig};
use dflash_profiler::Profiler;
use dflash_profiler::timeline::{Manifest, MetricsWriter, RunDir, State};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};
use tch::{Device, Kind};

/// What the command line adds to the configuration.
#[derive(Clone, Debug, Default)]
pub struct TrainOptions {
    /// The command line, for run.json.
    pub command: Vec<String>,
    /// The configuration file, as it was given, for messages.
    pub config_name: String,
    /// The commit that the program was built from, for run.json.
    pub commit: Option<String>,
}

/// A finished training.
#[derive(Debug)]
pub struct Trained {
    /// Its run directory.
    pub run: RunDir,
    /// Steps made; fewer than configured if it was stopped.
    pub steps: usize,
    /// Context tokens a second, without padding.
    pub tokens_per_s: f64,
    /// Each lane's loop, in seconds by a clock that is not the profiler's.
    pub loop_seconds: Vec<(String, f64)>,
    /// The exported drafter; none comes of a simulation.
    pub drafter: Option<PathBuf>,
    /// It was stopped before its end.
    pub stopped: bool,
    /// What the recorder could not do, if anything.
    pub trouble: Option<String>,
}

/// Everything that is loaded before the first step.
struct Loaded {
    samples: Vec<Text>,
    targets: Vec<Target>,
    target_config: TargetConfig,
    drafter: DFlashDrafter,
    drafter_devices: Vec<Device>,
}

/// Trains a drafter. `stop` is asked now and then: true ends early with what has been learnt; `begun` is told the run directory.
///
/// # Errors
/// Bad input before anything is written; a lane that failed, with the run directory closed as failed.
pub fn train(
    config: &Config,
    options: &TrainOptions,
    observer: &dyn Observer,
    stop: Stop<'_>,
    begun: impl FnOnce(&RunDir),
) -> Result<Trained, TrainError> {
    if config.pipeline.is_simulated() {
        return simulate(config, options, observer, stop, begun);
    }
    let loaded = load(config, options)?;
    let target_config = loaded.target_config.clone();
    let run = RunDir::create(&config.run.dir, &config.run.name, manifest(config, options, on_gpu(&loaded)))?;
    begun(&run);
    let work = || record(config, loaded, &target_config, &run, observer, stop);
    // Outside the lanes too, running out of memory arrives as a panic of tch.
    let trained = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|cause| {
        Err(TrainError::Lane { lane: "the training".to_owned(), cause: cause_text(cause.as_ref()) })
    });
    let closed = close(&run, &trained);
    let trained = trained?;
    closed.map(|()| trained)
}

/// Trains and exports, with the profiler running.
fn record(
    config: &Config,
    loaded: Loaded,
    target: &TargetConfig,
    run: &RunDir,
    observer: &dyn Observer,
    stop: Stop<'_>,
) -> Result<Trained, TrainError> {
    let profiler = start_profiler(run, config, on_gpu(&loaded))?;
    let requests = profiler.requests();
    let stop = || stop() || requests.stop();
    let outcome = run_pipeline(config, loaded, run, &profiler, observer, &stop);
    profiler.finish();
    // After the end: the last blocks may be the ones that find no room.
    let trouble = profiler.trouble();
    export(outcome?, target, run, config, trouble)
}

/// Whether a worker is on a GPU.
fn on_gpu(loaded: &Loaded) -> bool {
    loaded.targets.iter().any(|t| t.device().is_cuda()) || loaded.drafter_devices.iter().any(|d| d.is_cuda())
}

fn load(config: &Config, options: &TrainOptions) -> Result<Loaded, TrainError> {
    // First of all, while no other thread is there: see there.
    dflash_torch::load_cuda();
    let tools = TextTools::load(&config.model.target)?;
    if !cached(&config.data.shards, &prepare::key(config, &tools)?)? {
        return Err(TrainError::NotPrepared {
            shards: config.data.shards.clone(),
            config: options.config_name.clone(),
        });
    }
    let samples = texts(&PreloadedDataset::open(&config.data.shards)?);
    let all = |choices: Vec<DeviceChoice>| choices.into_iter().map(device::resolve).collect::<Result<Vec<_>, _>>();
    let (target_devices, drafter_devices) = (all(config.pipeline.targets())?, all(config.pipeline.drafters())?);
    let kind = device::kind(config.model.dtype, target_devices[0]);
    let load = |&device: &Device| Target::load(&config.model.target, kind, device);
    let targets: Vec<_> = target_devices.iter().map(load).collect::<Result<_, _>>()?;
    let target_config = targets[0].config.clone();
    let drafter = fresh_drafter(config, &target_config, kind, drafter_devices[0])?;
    guard(config, &targets[0], &samples)?;
    Ok(Loaded { samples, targets, target_config, drafter, drafter_devices })
}

/// What would be learnt wrong in silence is an error here, before the first step.
fn guard(config: &Config, target: &Target, samples: &[Text]) -> Result<(), TrainError> {
    // Beside the target, wherever the one that learns is.
    let drafter = fresh_drafter(config, &target.config, target.kind(), target.device())?;
    let texts: Vec<_> = samples.iter().map(Text::row).collect();
    let subject = Subject { target, drafter: &drafter, rule: config.train.anchor_rule, texts: &texts };
    Ok(guards::check(&subject)?)
}

/// The drafter that a configuration begins with.
///
/// # Errors
/// It does not fit the target.
pub(super) fn fresh_drafter(
    config: &Config,
    target: &TargetConfig,
    kind: Kind,
    device: Device,
) -> Result<DFlashDrafter, TrainError> {
    let shape = DrafterConfig::for_target(target, &config.drafter);
    shape.check(target, &config.model.target.join("config.json"))?;
    let seed = i64::try_from(config.run.seed).unwrap_or(i64::MAX);
    let init = Init { seed, final_norm: config.drafter.final_norm_init };
    Ok(DFlashDrafter::fresh(&shape, init, kind, device).computed(&config.drafter))
}

fn texts(dataset: &PreloadedDataset) -> Vec<Text> {
    let text = |s: &crate::data::Sample| Text {
        ids: s.ids.iter().map(|&id| i64::from(id)).collect(),
        loss_mask: s.loss_mask.clone(),
    };
    dataset.samples().iter().map(text).collect()
}

pub(super) fn manifest(config: &Config, options: &TrainOptions, on_gpu: bool) -> Manifest {
    let mut manifest = Manifest::default();
    manifest.command.clone_from(&options.command);
    manifest.version = env!("CARGO_PKG_VERSION").to_owned();
    manifest.commit.clone_from(&options.commit);
    if on_gpu {
        manifest.gpu_details = dflash_profiler::gpu_details();
        manifest.gpus = manifest.gpu_details.iter().map(|gpu| gpu.name.clone()).collect();
    }
    manifest.config = serde_json::to_value(config).unwrap_or_default();
    manifest
}

fn run_pipeline(
    config: &Config,
    loaded: Loaded,
    run: &RunDir,
    profiler: &Profiler,
    observer: &dyn Observer,
    stop: Stop<'_>,
) -> Result<pipeline::Outcome, TrainError> {
    let slots = loaded.drafter.config.block_size as usize - 1;
    let checkpoints = run.checkpoints();
    pipeline::run(Parts {
        config,
        samples: &loaded.samples,
        targets: loaded.targets,
        drafter: loaded.drafter,
        drafter_devices: loaded.drafter_devices,
        profiler,
        checkpoints: &checkpoints,
        observer,
        metrics: MetricsWriter::open(&run.metrics_csv(), slots)?,
        stop,
    })
}

fn export(
    outcome: pipeline::Outcome,
    target: &TargetConfig,
    run: &RunDir,
    config: &Config,
    trouble: Option<String>,
) -> Result<Trained, TrainError> {
    let dir = run.checkpoints().join("export");
    drafter::save(&outcome.drafter, target, &dir).map_err(|source| TrainError::Save { path: dir.clone(), source })?;
    let pipeline::Outcome { steps, tokens_per_s, loop_seconds, .. } = outcome;
    let stopped = steps < config.train.steps;
    Ok(Trained { run: run.clone(), steps, tokens_per_s, loop_seconds, drafter: Some(dir), stopped, trouble })
}

/// Writes the outcome into run.json.
pub(super) fn close(run: &RunDir, trained: &Result<Trained, TrainError>) -> Result<(), TrainError> {
    let mut manifest = run.manifest()?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    manifest.ended_unix_ns = i64::try_from(now.as_nanos()).ok();
    let (state, outcome) = match trained {
        Ok(t) if t.stopped => (State::Stopped, format!("stopped after {} steps", t.steps)),
        Ok(t) => (State::Finished, format!("{} steps", t.steps)),
        Err(error) => (State::Failed, error.to_string()),
    };
    manifest.state = state;
    manifest.outcome = Some(outcome);
    if let Ok(t) = trained {
        manifest.results.insert("steps".to_owned(), t.steps.into());
        manifest.results.insert("tokens_per_s".to_owned(), t.tokens_per_s.into());
        let loops: serde_json::Map<_, _> = t.loop_seconds.iter().map(|(lane, s)| (lane.clone(), (*s).into())).collect();
        manifest.results.insert("loop_seconds".to_owned(), loops.into());
    }
    Ok(run.write_manifest(&manifest)?)
}
