//! The evaluation of a run's drafter on held-out prompts, with two controls.

use super::resume::run_config;
use crate::TextTools;
use crate::config::Config;
use crate::data::read_conversations;
use crate::device;
use crate::drafter::{self, DFlashDrafter, Init};
use crate::error::TrainError;
use crate::eval::{DecodeOptions, Evaluation, evaluate};
use crate::target::Target;
use dflash_profiler::timeline::RunDir;
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

/// The figures of a run's drafter.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunEvaluation {
    /// The trained drafter.
    pub trained: Evaluation,
    /// The drafter before training; `None` without controls.
    pub untrained: Option<Evaluation>,
    /// The trained drafter without context features; `None` without controls.
    pub zeroed: Option<Evaluation>,
    /// The target without a drafter, for its speed; `None` without controls.
    pub plain: Option<Evaluation>,
    /// The arithmetic can tell an error of the decoding loop from rounding: not so bfloat16 on a GPU, where a pass over
    /// a block and one over the whole text differ by several steps.
    pub strict: bool,
    /// At which the drafters and the target drew; 0: greedy.
    pub temperature: f64,
}

impl RunEvaluation {
    /// Answers that the target would not have given.
    #[must_use]
    pub fn wrong(&self) -> usize {
        let controls = self.untrained.iter().chain(&self.zeroed).chain(&self.plain);
        controls.map(|e| e.wrong).sum::<usize>() + self.trained.wrong
    }

    /// Tokens a second with and without drafting; empty without controls.
    #[must_use]
    pub fn speed_line(&self) -> String {
        let Some(plain) = &self.plain else { return String::new() };
        let (with, without) = (self.trained.tokens_per_second(), plain.tokens_per_second());
        let times = if without > 0.0 { with / without } else { 0.0 };
        format!("speed: {with:.0} tokens/s with drafting, {without:.0} without ({times:.2} times)\n")
    }

    /// The line that a demo ends with.
    #[must_use]
    pub fn tau_line(&self) -> String {
        match (&self.untrained, &self.zeroed) {
            (Some(untrained), Some(zeroed)) => format!(
                "tau: untrained {:.2}, trained {:.2}, trained but with context features zeroed at evaluation {:.2}",
                untrained.tau, self.trained.tau, zeroed.tau
            ),
            _ => format!("tau: trained {:.2}", self.trained.tau),
        }
    }
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
    let evaluation = evaluate_drafter(&run.checkpoints().join("export"), &config, options, progress)?;
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
    let strict = bench.target.kind() == Kind::Float || bench.target.device() == Device::Cpu;
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
        let controls = asked.control_prompts.unwrap_or(config.eval.control_prompts);
        let untrained = untrained(config, (controls > 0).then_some(&target), &trained)?;
        let options = DecodeOptions {
            max_new_tokens: config.eval.max_new_tokens,
            stop_ids: target.config.eos_token_ids.clone(),
            block_size: 0,
            zero_features: false,
            temperature: asked.temperature.unwrap_or(config.eval.temperature),
            seed: config.run.seed,
        };
        let tools = TextTools::load(&config.model.target)?;
        tools.check(&target.config, &config.model.target)?;
        let answer = (config.eval.max_new_tokens + 2 * trained.config.block_size as usize) as i64;
        let room = usize::try_from(target.max_length() - answer).unwrap_or(0);
        let prompts = prompts(config, &tools, config.data.max_prompt_tokens.min(room))?;
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

/// Writes a checkpoint's figures beside it, by which the best one is found.
///
/// # Errors
/// The disk refuses.
pub fn record_checkpoint(checkpoint: &Path, evaluation: &RunEvaluation) -> Result<(), TrainError> {
    if evaluation.strict && evaluation.wrong() > 0 {
        return Ok(()); // not a figure to quote
    }
    let path = checkpoint.join(crate::checkpoint::EVAL_JSON);
    let RunEvaluation { trained, temperature, .. } = evaluation;
    let figures = serde_json::json!({
        "tau": trained.tau,
        "prompts": trained.prompts,
        "temperature": temperature,
        "evaluation": evaluation,
    });
    let text = figures.to_string() + "\n";
    let beside = path.with_extension("part");
    std::fs::write(&beside, text)
        .and_then(|()| std::fs::rename(&beside, &path))
        .map_err(|source| TrainError::Save { path, source })
}

fn record(run: &RunDir, evaluation: &RunEvaluation) -> Result<(), TrainError> {
    let mut manifest = run.manifest()?;
    if evaluation.strict && evaluation.wrong() > 0 {
        return Ok(()); // not a figure to quote
    }
    manifest.results.insert("tau".to_owned(), evaluation.trained.tau.into());
    let whole = serde_json::to_value(evaluation).unwrap_or_default();
    manifest.results.insert("evaluation".to_owned(), whole);
    Ok(run.write_manifest(&manifest)?)
}
