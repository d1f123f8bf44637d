//! `dflash eval`: a run's drafter on held-out prompts, by the real draft-verify loop.

use crate::exit;
use crate::output::{self, say};
use crate::run_arg::RunArg;
use crate::show::Bar;
use anyhow::Result;
use dflash_trainer::config::Config;
use dflash_trainer::eval::Evaluation;
use dflash_trainer::session::{Control, EvaluateOptions, RunEvaluation, evaluate_run};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Another configuration than the run's own
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Held-out prompts for the trained drafter, instead of the configuration's
    #[arg(long, value_name = "N")]
    prompts: Option<std::num::NonZeroUsize>,
    /// Held-out prompts for each of the two controls (untrained; features zeroed); 0 = no controls
    #[arg(long, value_name = "N")]
    control_prompts: Option<usize>,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let run = args.run.resolve()?;
    let options = EvaluateOptions {
        config: args.config.as_deref().map(Config::load).transpose()?,
        prompts: args.prompts.map(Into::into),
        control_prompts: args.control_prompts,
    };
    let bar = Bar::new("eval");
    let evaluation = evaluate_run(&run, &options, &mut |which, prompts, e| {
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

fn name(which: Control) -> &'static str {
    match which {
        Control::Untrained => "untrained",
        Control::Trained => "trained",
        Control::Zeroed => "features zeroed",
    }
}

fn all(e: &RunEvaluation) -> impl Iterator<Item = (Control, &Evaluation)> {
    let untrained = e.untrained.iter().map(|e| (Control::Untrained, e));
    let zeroed = e.zeroed.iter().map(|e| (Control::Zeroed, e));
    untrained.chain(std::iter::once((Control::Trained, &e.trained))).chain(zeroed)
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
            e.equality_line()
        )
    };
    all(evaluation).map(figures).collect::<String>() + &evaluation.tau_line() + "\n"
}
