//! A training run from its configuration to its exported drafter, all of it recorded in a run directory.

use super::begin::Begin;
use super::evaluate::{held_out, note};
use super::features::features;
use super::finish::finish;
use super::random;
use super::record::start_profiler;
use super::simulate::simulate;
use super::texts::texts;
use crate::TextTools;
use crate::checkpoint::{self, Identity, Snapshot};
use crate::config::{Config, Delivery, DeviceChoice};
use crate::data::{Key, PreloadedDataset, cached};
use crate::device;
use crate::drafter::{self, DFlashDrafter, DrafterConfig, Init};
use crate::error::TrainError;
use crate::eval::RunEvaluation;
use crate::events::MetricsLog;
use crate::features::DiskFeatures;
use crate::guards::{self, Subject};
use crate::pipeline::lane::cause_text;
use crate::pipeline::{self, HeldOut, Observer, Parts, Saving, Stop, Text};
use crate::prepare;
use crate::target::{Target, TargetConfig};
use dflash_profiler::timeline::{RunDir, State};
use dflash_profiler::{Profiler, Severity};
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
    /// A run to go on in, instead of a new one.
    pub resume: Option<RunDir>,
    /// Keys that the command line changes on purpose, and in which a checkpoint may differ if they are of
    /// those that can be changed on the way: `train.steps`, `train.learning_rate`, …
    pub given: Vec<String>,
}

/// A finished training.
#[derive(Debug)]
pub struct Trained {
    /// Its run directory.
    pub run: RunDir,
    /// Steps made; fewer than configured if it was stopped.
    pub steps: usize,
    /// Context tokens a second, without padding; 0 where no step was left to make, and then not in run.json.
    pub tokens_per_s: f64,
    /// Each lane's loop, in seconds by a clock that is not the profiler's.
    pub loop_seconds: Vec<(String, f64)>,
    /// The exported drafter; none comes of a simulation, or of random weights.
    pub drafter: Option<PathBuf>,
    /// What an evaluation after the last step has found, if there was one.
    pub evaluation: Option<RunEvaluation>,
    /// It was stopped before its end.
    pub stopped: bool,
    /// What the recorder could not do, if anything.
    pub trouble: Option<String>,
}

/// Everything that is loaded before the first step.
struct Loaded {
    identity: Identity,
    samples: Vec<Text>,
    targets: Vec<Target>,
    target_config: TargetConfig,
    drafter: DFlashDrafter,
    drafter_devices: Vec<Device>,
    held_out: Option<HeldOut>,
    features: Option<DiskFeatures>,
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
    let begin = Begin::new(config, options, &loaded.identity, on_gpu(&loaded))?;
    let Begin { run, attempt, snapshot, notes, lock, complete } = begin;
    begun(&run);
    let notes: Vec<String> = notes.into_iter().chain(loaded.features.iter().map(there)).collect();
    notes.iter().for_each(|note| observer.note(note));
    if let Some(checkpoint) = complete {
        return finish(&run, &checkpoint, &target_config, config.train.steps);
    }
    let work = || record(config, loaded, &target_config, (&run, attempt, snapshot), &notes, observer, stop);
    // Outside the lanes too, running out of memory arrives as a panic of tch.
    let trained = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|cause| {
        Err(TrainError::Lane { lane: "the training".to_owned(), cause: cause_text(cause.as_ref()) })
    });
    let closed = close(&run, &trained);
    // Not before: another attempt's run.json must not be written over.
    drop(lock);
    let trained = trained?;
    closed.map(|()| trained)
}

/// Trains and exports, with the profiler running.
fn record(
    config: &Config,
    loaded: Loaded,
    target: &TargetConfig,
    (run, attempt, snapshot): (&RunDir, u32, Option<Snapshot>),
    notes: &[String],
    observer: &dyn Observer,
    stop: Stop<'_>,
) -> Result<Trained, TrainError> {
    let profiler = start_profiler(run, config, attempt, on_gpu(&loaded))?;
    notes.iter().for_each(|note| profiler.mark(Severity::Info, note));
    let requests = profiler.requests();
    let stop = || stop() || requests.stop();
    let outcome = run_pipeline(config, loaded, (run, attempt, snapshot), &profiler, observer, &stop);
    profiler.finish();
    // After the end: the last blocks may be the ones that find no room.
    let trouble = profiler.trouble();
    export(outcome?, target, run, config, trouble)
}

/// What is told of the hidden states on the disk.
fn there(features: &DiskFeatures) -> String {
    let ((made, all), place) = (features.progress(), features.directory().display());
    format!("hidden states: {made} of {all} rows are in {place}")
}

/// Whether a worker is on a GPU.
fn on_gpu(loaded: &Loaded) -> bool {
    loaded.targets.iter().any(|t| t.device().is_cuda()) || loaded.drafter_devices.iter().any(|d| d.is_cuda())
}

fn load(config: &Config, options: &TrainOptions) -> Result<Loaded, TrainError> {
    // First of all, while no other thread is there: see there.
    dflash_torch::load_cuda();
    let (key, samples) = read(config, options)?;
    let all = |choices: Vec<DeviceChoice>| choices.into_iter().map(device::resolve).collect::<Result<Vec<_>, _>>();
    let (target_devices, drafter_devices) = (all(config.pipeline.targets())?, all(config.pipeline.drafters())?);
    let kind = device::kind(config.model.dtype, target_devices[0]);
    let targets: Vec<_> = match TargetConfig::named(&config.random.target) {
        Some(shape) => random::targets(&shape, config.run.seed, kind, &target_devices)?,
        None => {
            let load = |&device: &Device| Target::load(&config.model.target, kind, device);
            target_devices.iter().map(load).collect::<Result<_, _>>()?
        }
    };
    let target_config = targets[0].config.clone();
    // All weights come from the checkpoint: what the first attempt began with need not be there any more.
    let mut first = config.clone();
    if options.resume.is_some() {
        first.drafter.init = PathBuf::new();
    }
    let drafter = fresh_drafter(&first, &target_config, kind, drafter_devices[0])?;
    guard(config, &targets[0], &drafter, &samples)?;
    let held_out = held_out_of(config, &targets[0], &drafter)?;
    let features = features(config, &key, &targets[0], &drafter, &samples)?;
    let identity = Identity::new(config, &key);
    Ok(Loaded { identity, samples, targets, target_config, drafter, drafter_devices, held_out, features })
}

/// What the drafter is evaluated on while it is trained, if it is.
fn held_out_of(config: &Config, target: &Target, drafter: &DFlashDrafter) -> Result<Option<HeldOut>, TrainError> {
    if config.eval.every == 0 || config.random.is_on() {
        return Ok(None);
    }
    let tools = TextTools::load(&config.model.target)?;
    let (mut prompts, options) = held_out(config, &tools, target, drafter.config.block_size, config.eval.temperature)?;
    prompts.truncate(config.eval.prompts);
    Ok(Some(HeldOut { prompts, options }))
}

/// The texts to train on, and what they were made from.
fn read(config: &Config, options: &TrainOptions) -> Result<(Key, Vec<Text>), TrainError> {
    if config.random.is_on() {
        return Ok((random::key(config), random::texts(config)));
    }
    let tools = TextTools::load(&config.model.target)?;
    let key = prepare::key(config, &tools)?;
    if !cached(&config.data.shards, &key)? {
        return Err(TrainError::NotPrepared {
            shards: config.data.shards.clone(),
            config: options.config_name.clone(),
        });
    }
    let samples = texts(&PreloadedDataset::open(&config.data.shards)?, &config.data);
    Ok((key, samples))
}

/// What would be learnt wrong in silence is an error here, before the first step. Of random texts nothing is learnt.
fn guard(config: &Config, target: &Target, drafter: &DFlashDrafter, samples: &[Text]) -> Result<(), TrainError> {
    if config.random.is_on() {
        return Ok(());
    }
    // They are looked at side by side.
    let beside = (drafter.device() != target.device()).then(|| drafter.copied_to(target.device()));
    let texts: Vec<_> = samples.iter().map(Text::row).collect();
    let (drafter, rule) = (beside.as_ref().unwrap_or(drafter), config.train.anchor_rule);
    let subject = Subject { target, drafter, rule, texts: &texts };
    Ok(guards::check(&subject)?)
}

/// The drafter that a configuration begins with.
///
/// # Errors
/// It does not fit the target.
fn fresh_drafter(
    config: &Config,
    target: &TargetConfig,
    kind: Kind,
    device: Device,
) -> Result<DFlashDrafter, TrainError> {
    let shape = DrafterConfig::for_target(target, &config.drafter);
    shape.check(target, &config.model.target.join("config.json"))?;
    if !config.drafter.init.as_os_str().is_empty() {
        return given_drafter(config, &shape, kind, device);
    }
    let seed = i64::try_from(config.run.seed).unwrap_or(i64::MAX);
    let init = Init { seed, final_norm: config.drafter.final_norm_init };
    Ok(DFlashDrafter::fresh(&shape, init, kind, device).computed(&config.drafter))
}

/// The drafter of `[drafter] init`, which must have the configuration's shape: a block size that changes unseen would be
/// trained and served wrong.
fn given_drafter(
    config: &Config,
    shape: &DrafterConfig,
    kind: Kind,
    device: Device,
) -> Result<DFlashDrafter, TrainError> {
    let drafter = drafter::load(&config.drafter.init, kind, device)?;
    match drafter.config.differences(shape) {
        problem if problem.is_empty() => Ok(drafter.computed(&config.drafter)),
        problem => Err(TrainError::Empty { path: config.drafter.init.clone(), problem }),
    }
}

fn run_pipeline(
    config: &Config,
    loaded: Loaded,
    (run, attempt, resume): (&RunDir, u32, Option<Snapshot>),
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
        saving: saving(config, attempt, loaded.identity),
        resume,
        held_out: loaded.held_out,
        features: loaded.features,
        observer,
        metrics: MetricsLog::open(run, slots)?,
        stop,
    })
}

fn saving(config: &Config, attempt: u32, identity: Identity) -> Saving {
    let (every, keep) = (config.checkpoint.every, config.checkpoint.keep);
    let arrival = config.pipeline.order == Delivery::Arrival && config.pipeline.targets().len() > 1;
    let (seed, batches_per_step) = (config.run.seed, config.train.accumulate as u64);
    Saving { every, keep, attempt, seed, batches_per_step, arrival, identity, never: config.random.is_on() }
}

fn export(
    outcome: pipeline::Outcome,
    target: &TargetConfig,
    run: &RunDir,
    config: &Config,
    trouble: Option<String>,
) -> Result<Trained, TrainError> {
    let dir = (!config.random.is_on()).then(|| run.checkpoints().join("export"));
    if let Some(dir) = &dir {
        checkpoint::export(&outcome.drafter, target, dir)?;
    }
    let pipeline::Outcome { steps, tokens_per_s, loop_seconds, evaluation, .. } = outcome;
    let stopped = steps < config.train.steps;
    Ok(Trained { run: run.clone(), steps, tokens_per_s, loop_seconds, drafter: dir, evaluation, stopped, trouble })
}

/// Nanoseconds since 1970.
pub(super) fn ended_now() -> Option<i64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_nanos()).ok()
}

/// Writes the outcome into run.json.
pub(super) fn close(run: &RunDir, trained: &Result<Trained, TrainError>) -> Result<(), TrainError> {
    let mut manifest = run.manifest()?;
    manifest.ended_unix_ns = ended_now();
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
        // What an earlier attempt has found is of another drafter.
        ["tau", "evaluation"].iter().for_each(|name| drop(manifest.results.remove(*name)));
        t.evaluation.iter().for_each(|evaluation| note(&mut manifest, evaluation));
    }
    Ok(run.write_manifest(&manifest)?)
}
