//! What a training is made of, before its first step: texts, targets, the drafter that it begins with.

use super::evaluate::held_out;
use super::random;
use super::texts::texts;
use super::together::Together;
use super::train::TrainOptions;
use crate::TextTools;
use crate::checkpoint::Identity;
use crate::config::{Config, DeviceChoice};
use crate::data::{Key, PreloadedDataset, cached};
use crate::device;
use crate::drafter::{self, DFlashDrafter, DrafterConfig, Init};
use crate::error::TrainError;
use crate::guards::{self, Subject};
use crate::pipeline::{HeldOut, Text, choose_attention};
use crate::prepare;
use crate::target::{Target, TargetConfig};
use std::path::PathBuf;
use tch::{Device, Kind};

/// Everything that is loaded before the first step.
pub(super) struct Loaded {
    pub(super) identity: Identity,
    pub(super) samples: Vec<Text>,
    pub(super) targets: Vec<Target>,
    pub(super) target_config: TargetConfig,
    pub(super) drafter: DFlashDrafter,
    pub(super) drafter_devices: Vec<Device>,
    pub(super) held_out: Option<HeldOut>,
    /// What the texts were made from.
    pub(super) key: Key,
}

/// Whether a worker is on a GPU.
pub(super) fn on_gpu(loaded: &Loaded) -> bool {
    loaded.targets.iter().any(|t| t.device().is_cuda()) || loaded.drafter_devices.iter().any(|d| d.is_cuda())
}

/// Loads all of it; `resumes`: to go on with a checkpoint.
///
/// # Errors
/// What is missing, what does not fit, and what would be learnt wrong in silence.
pub(super) fn load(
    config: &Config,
    options: &TrainOptions,
    together: &Together,
    resumes: bool,
) -> Result<Loaded, TrainError> {
    // First of all, while no other thread is there: see there.
    dflash_torch::load_cuda();
    // Random texts have none.
    let tools = if config.random.is_on() { None } else { Some(TextTools::load(&config.model.target)?) };
    let (key, samples) = read(config, options, tools.as_ref())?;
    let resolve = |choice| device::resolve_at(choice, together.local_rank);
    let all = |choices: Vec<DeviceChoice>| choices.into_iter().map(resolve).collect::<Result<Vec<_>, _>>();
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
    if resumes {
        first.drafter.init = PathBuf::new();
    }
    let drafter = fresh_drafter(&first, &target_config, kind, drafter_devices[0])?;
    let workers = target_devices.iter().chain(&drafter_devices).copied();
    choose_attention(config.train.attention, workers, (&target_config, &drafter.config, kind))?;
    guard(config, &targets[0], &drafter, &samples)?;
    let held_out = held_out_of(config, tools.as_ref(), &targets[0], &drafter)?;
    let identity = Identity::new(config, &key, together.drafters());
    Ok(Loaded { identity, samples, targets, target_config, drafter, drafter_devices, held_out, key })
}

/// What the drafter is evaluated on while it is trained, if it is.
fn held_out_of(
    config: &Config,
    tools: Option<&TextTools>,
    target: &Target,
    drafter: &DFlashDrafter,
) -> Result<Option<HeldOut>, TrainError> {
    let Some(tools) = tools.filter(|_| config.eval.every > 0) else { return Ok(None) };
    let (mut prompts, options) = held_out(config, tools, target, drafter.config.block_size, config.eval.temperature)?;
    prompts.truncate(config.eval.prompts);
    Ok(Some(HeldOut { prompts, options }))
}

/// The texts to train on, and what they were made from.
fn read(config: &Config, options: &TrainOptions, tools: Option<&TextTools>) -> Result<(Key, Vec<Text>), TrainError> {
    let Some(tools) = tools else { return Ok((random::key(config), random::texts(config))) };
    let key = prepare::key(config, tools)?;
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
