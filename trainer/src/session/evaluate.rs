//! The evaluation of a run's drafter on held-out prompts, with two controls.

use super::random::nothing_kept;
use super::resume::run_config;
use crate::TextTools;
use crate::checkpoint;
use crate::checkpoint::EXPORT;
use crate::config::Config;
use crate::data::read_conversations;
use crate::device;
use crate::drafter::{self, DFlashDrafter, Init};
use crate::error::TrainError;
use crate::eval::{DecodeOptions, Evaluation, RunEvaluation, evaluate, strict};
use crate::pipeline::choose_attention;
use crate::target::Target;
use dflash_profiler::timeline::{Manifest, RunDir};
use serde::Serialize;
use std::path::{Path, PathBuf};
use tch::{Device, Kind};

/// What is evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Control {
    /// The trained drafter.
    Trained,
    /// The drafter as it was before training.
    Untrained,
    /// The trained drafter, with zeros instead of the target's hidden states.
    Zeroed,
    /// No drafter: the same loop, a token at a time.
    Plain,
}

/// What the command line adds.
#[derive(Clone, Debug, Default)]
pub struct EvaluateOptions {
    /// Another configuration than the run's own.
    pub config: Option<Config>,
    /// Prompts for the trained drafter, if other than configured.
    pub prompts: Option<usize>,
    /// Prompts for the controls, if other than configured.
    pub control_prompts: Option<usize>,
    /// Temperature, if other than configured.
    pub temperature: Option<f64>,
}

/// Evaluates the drafter that a run has exported, and writes the figures into its run.json. `progress` is told what is
/// being evaluated, over how many prompts, and the figures so far.
///
/// # Errors
/// Bad input; see [`TrainError`].
pub fn evaluate_run(
    run: &RunDir,
    options: &EvaluateOptions,
    progress: &mut dyn FnMut(Control, usize, &Evaluation),
) -> Result<RunEvaluation, TrainError> {
    let config = match &options.config {
        Some(config) => config.clone(),
        None => run_config(run)?,
    };
    if config.random.is_on() {
        return Err(nothing_kept(run));
    }
    let evaluation = evaluate_drafter(&run.checkpoints().join(EXPORT), &config, options, progress)?;
    record(run, &evaluation)?;
    Ok(evaluation)
}

/// Evaluates any drafter's directory, ours or a published one, on the configuration's target and held-out prompts.
///
/// # Errors
/// Bad input; see [`TrainError`].
pub fn evaluate_drafter(
    drafter: &Path,
    config: &Config,
    options: &EvaluateOptions,
    progress: &mut dyn FnMut(Control, usize, &Evaluation),
) -> Result<RunEvaluation, TrainError> {
    let bench = Bench::load(config, options, drafter)?;
    let count = options.prompts.unwrap_or(config.eval.prompts);
    let controls = options.control_prompts.unwrap_or(config.eval.control_prompts);
    let control = |which, progress: &mut dyn FnMut(Control, usize, &Evaluation)| {
        (controls > 0).then(|| bench.run(which, controls, progress))
    };
    let untrained = control(Control::Untrained, progress);
    let trained = bench.run(Control::Trained, count, progress);
    let zeroed = control(Control::Zeroed, progress);
    let plain = control(Control::Plain, progress);
    let strict = strict(&bench.target);
    Ok(RunEvaluation { trained, untrained, zeroed, plain, strict, temperature: bench.options.temperature })
}

/// What all three evaluations share.
struct Bench {
    target: Target,
    trained: DFlashDrafter,
    untrained: DFlashDrafter,
    prompts: Vec<Vec<i64>>,
    options: DecodeOptions,
}

impl Bench {
    fn load(config: &Config, asked: &EvaluateOptions, export: &Path) -> Result<Self, TrainError> {
        let device = device::resolve(config.pipeline.target_device)?;
        let kind = device::kind(config.model.dtype, device);
        let trained = drafter::load(export, kind, device)?;
        let target = Target::load(&config.model.target, kind, device)?;
        trained.config.check(&target.config, &export.join("config.json"))?;
        choose_attention(config.train.attention, [device], (&target.config, &trained.config, kind))?;
        let controls = asked.control_prompts.unwrap_or(config.eval.control_prompts);
        let untrained = untrained(config, (controls > 0).then_some(&target), &trained)?;
        let tools = TextTools::load(&config.model.target)?;
        tools.check(&target.config, &config.model.target)?;
        let temperature = asked.temperature.unwrap_or(config.eval.temperature);
        let (prompts, options) = held_out(config, &tools, &target, trained.config.block_size, temperature)?;
        Ok(Self { target, trained, untrained, prompts, options })
    }

    fn run(&self, which: Control, count: usize, progress: &mut dyn FnMut(Control, usize, &Evaluation)) -> Evaluation {
        let drafter = if which == Control::Untrained { &self.untrained } else { &self.trained };
        let options = DecodeOptions {
            zero_features: which == Control::Zeroed,
            block_size: usize::from(which == Control::Plain),
            ..self.options.clone()
        };
        let prompts = &self.prompts[..count.min(self.prompts.len())];
        evaluate(&self.target, drafter, prompts, &options, |e| progress(which, prompts.len(), e))
    }
}

/// The drafter that the training began with: that of `[drafter] init`, or random weights. Without a `target` nobody wants
/// it, and what it was read from may be gone.
fn untrained(config: &Config, target: Option<&Target>, trained: &DFlashDrafter) -> Result<DFlashDrafter, TrainError> {
    let (kind, device) =
        trained.parameters().first().map_or((Kind::Float, Device::Cpu), |(_, w)| (w.kind(), w.device()));
    let init = &config.drafter.init;
    if let Some(target) = target.filter(|_| !init.as_os_str().is_empty()) {
        let given = drafter::load(init, kind, device)?;
        given.config.check(&target.config, &init.join("config.json"))?;
        return Ok(given);
    }
    let seed = i64::try_from(config.run.seed).unwrap_or(i64::MAX);
    let random = Init { seed, final_norm: config.drafter.final_norm_init };
    Ok(DFlashDrafter::fresh(&trained.config, random, kind, device))
}

/// The held-out prompts that `target` has room for, with answers checked in blocks of so many tokens, and how they are
/// answered.
///
/// # Errors
/// There are none, or their file cannot be read.
pub(super) fn held_out(
    config: &Config,
    tools: &TextTools,
    target: &Target,
    block: i64,
    temperature: f64,
) -> Result<(Vec<Vec<i64>>, DecodeOptions), TrainError> {
    let options = DecodeOptions {
        max_new_tokens: config.eval.max_new_tokens,
        stop_ids: target.config.eos_token_ids.clone(),
        block_size: 0,
        zero_features: false,
        temperature,
        seed: config.run.seed,
    };
    let answer = config.eval.max_new_tokens as i64 + 2 * block;
    let room = usize::try_from(target.max_length() - answer).unwrap_or(0);
    Ok((prompts(config, tools, config.data.max_prompt_tokens.min(room))?, options))
}

fn prompts(config: &Config, tools: &TextTools, longest: usize) -> Result<Vec<Vec<i64>>, TrainError> {
    let path: &PathBuf = &config.data.heldout;
    let prompts: Vec<Vec<i64>> = read_conversations(path)?.iter().map(|c| tools.prompt(c)).collect::<Result<_, _>>()?;
    let fitting: Vec<_> = prompts.into_iter().filter(|p| !p.is_empty() && p.len() <= longest).collect();
    if fitting.is_empty() {
        let problem = format!("no held-out prompt has at most {longest} tokens; see [data] max_prompt_tokens");
        return Err(TrainError::Empty { path: path.clone(), problem });
    }
    Ok(fitting)
}

/// Writes a checkpoint's figures into it, by which the best one is found.
///
/// # Errors
/// The disk refuses.
pub fn record_checkpoint(checkpoint: &Path, evaluation: &RunEvaluation) -> Result<(), TrainError> {
    if evaluation.counts() {
        checkpoint::write_figures(checkpoint, &evaluation.figures())?;
    }
    Ok(())
}

fn record(run: &RunDir, evaluation: &RunEvaluation) -> Result<(), TrainError> {
    let mut manifest = run.manifest()?;
    note(&mut manifest, evaluation);
    Ok(run.write_manifest(&manifest)?)
}

/// Puts an evaluation of a run's last drafter among its results.
pub(super) fn note(manifest: &mut Manifest, evaluation: &RunEvaluation) {
    if evaluation.counts() {
        manifest.results.insert("tau".to_owned(), evaluation.trained.tau.into());
        let whole = serde_json::to_value(evaluation).unwrap_or_default();
        manifest.results.insert("evaluation".to_owned(), whole);
    }
}
