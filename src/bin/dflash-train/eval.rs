//! `dflash eval`: a drafter on held-out prompts, by the real draft-verify loop: a run's, a checkpoint's, or any other.

use crate::exit;
use crate::show::Bar;
use anyhow::{Result, bail};
use dflash::args::eval::Args;
use dflash::output::{self, say};
use dflash_reports::timeline::RunDir;
use dflash_trainer::TrainError;
use dflash_trainer::checkpoint;
use dflash_trainer::config::Config;
use dflash_trainer::eval::Evaluation;
use dflash_trainer::session::{Control, EvaluateOptions, RunEvaluation};
use dflash_trainer::session::{evaluate_drafter, evaluate_run, record_checkpoint, run_config};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub fn run(args: &Args) -> Result<ExitCode> {
    let subject = Subject::of(args)?;
    let options = EvaluateOptions {
        config: args.config.as_deref().map(Config::load).transpose()?,
        prompts: args.prompts.map(Into::into),
        control_prompts: args.control_prompts,
        temperature: args.temperature,
    };
    let bar = Bar::new("eval");
    let evaluation = subject.evaluate(&options, &mut |which, prompts, e| {
        bar.show(e.prompts as u64, prompts as u64, || format!("{}: tau {:.2}", name(which), e.tau));
    });
    bar.finish();
    let evaluation = evaluation.map_err(exit::trainer)?;
    let text = if args.json { serde_json::to_string_pretty(&evaluation)? + "\n" } else { text(&evaluation) };
    output::print(text.as_bytes())?;
    if evaluation.wrong() == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    if evaluation.strict {
        say("dflash: some answers are not the target's own: an error of the decoding loop; their tau is not recorded");
        return Ok(ExitCode::from(exit::FAILED));
    }
    say("dflash: warning: in bfloat16 a GPU rounds a block otherwise than a whole text; to tell that from an error, \
         evaluate with dtype = \"float32\"");
    Ok(ExitCode::SUCCESS)
}

/// Whose drafter is meant.
enum Subject {
    Run(RunDir),
    /// A checkpoint or a drafter's directory.
    Drafter {
        directory: PathBuf,
        checkpoint: Option<PathBuf>,
        config: Box<Config>,
    },
}

impl Subject {
    fn of(args: &Args) -> Result<Self> {
        let given = args.config.as_deref().map(Config::load).transpose()?;
        let Some(path) = args.run.typed().filter(|path| !path.join("run.json").exists()) else {
            return Ok(Self::Run(args.run.resolve()?));
        };
        let export = path.join(checkpoint::EXPORT);
        let (directory, checkpoint) = match (is_drafter(path), export.is_dir()) {
            (true, _) => (path.to_owned(), None),
            (false, true) => (export, Some(path.to_owned())),
            _ => return Ok(Self::Run(args.run.resolve()?)),
        };
        let config = match (given, path.parent().and_then(Path::parent)) {
            (Some(config), _) => config,
            (None, Some(run)) if checkpoint.is_some() => run_config(&RunDir::open(run)?)?,
            _ => bail!("{}: name the target and the prompts by a configuration, with --config", path.display()),
        };
        Ok(Self::Drafter { directory, checkpoint, config: Box::new(config) })
    }

    fn evaluate(
        &self,
        options: &EvaluateOptions,
        progress: &mut dyn FnMut(Control, usize, &Evaluation),
    ) -> Result<RunEvaluation, TrainError> {
        match self {
            Self::Run(run) => evaluate_run(run, options, progress),
            Self::Drafter { directory, checkpoint, config } => {
                let evaluation = evaluate_drafter(directory, config, options, progress)?;
                if let Some(checkpoint) = checkpoint {
                    record_checkpoint(checkpoint, &evaluation)?;
                }
                Ok(evaluation)
            }
        }
    }
}

/// A target's directory holds a config.json too.
fn is_drafter(directory: &Path) -> bool {
    std::fs::read_to_string(directory.join("config.json")).is_ok_and(|text| text.contains("\"dflash_config\""))
}

fn name(which: Control) -> &'static str {
    match which {
        Control::Untrained => "untrained",
        Control::Trained => "trained",
        Control::Zeroed => "features zeroed",
        Control::Plain => "without drafting",
    }
}

fn all(e: &RunEvaluation) -> impl Iterator<Item = (Control, &Evaluation)> {
    let untrained = e.untrained.iter().map(|e| (Control::Untrained, e));
    let zeroed = e.zeroed.iter().map(|e| (Control::Zeroed, e));
    let plain = e.plain.iter().map(|e| (Control::Plain, e));
    untrained.chain(std::iter::once((Control::Trained, &e.trained))).chain(zeroed).chain(plain)
}

/// Drawn tokens are compared with nothing.
fn agreement(e: &Evaluation) -> String {
    if e.equal + e.near_tie + e.wrong == 0 {
        "not compared: its tokens are drawn".to_owned()
    } else {
        e.equality_line()
    }
}

fn text(evaluation: &RunEvaluation) -> String {
    let figures = |(which, e): (Control, &Evaluation)| {
        let (what, speed) = (name(which), e.tokens_per_second());
        format!(
            "{what}: tau {:.3} (over all checks together {:.3}), {} prompts, {} tokens, {speed:.0} tokens/s\n  \
             acceptance lengths 1..{}: {:?}\n  output against the target's own: {}\n",
            e.tau,
            e.pooled,
            e.prompts,
            e.tokens,
            e.histogram.len(),
            e.histogram,
            agreement(e)
        )
    };
    all(evaluation).map(figures).collect::<String>() + &evaluation.speed_line() + &evaluation.tau_line() + "\n"
}
