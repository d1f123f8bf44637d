//! `dflash export`: a trained drafter as a directory that serving engines load.

use crate::exit;
use anyhow::{Result, bail};
use dflash::args::export::Args;
use dflash::output::{self, say};
use dflash::run_arg;
use dflash_reports::timeline::RunDir;
use dflash_trainer::checkpoint;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The directory of the drafter that is meant.
fn drafter(args: &Args) -> Result<PathBuf> {
    if let Some(drafter) = drafter_in(&args.source) {
        return Ok(drafter);
    }
    of_run(args, &run_arg::find(args.runs.as_ref(), &args.source)?)
}

fn of_run(args: &Args, run: &RunDir) -> Result<PathBuf> {
    let checkpoints = run.checkpoints();
    let (stored, _) = checkpoint::list(&checkpoints);
    let end = checkpoints.join(checkpoint::EXPORT);
    let chosen = match args.step {
        Some(step) => stored.into_iter().find(|s| s.state.step == step),
        None if args.best => checkpoint::best(&stored).cloned(),
        None if end.is_dir() => return Ok(end),
        None => stored.into_iter().next_back(),
    };
    match (chosen, args.step) {
        (Some(stored), _) => Ok(stored.path.join(checkpoint::EXPORT)),
        (None, Some(step)) => bail!("{}: there is no checkpoint of step {step}", checkpoints.display()),
        (None, None) if args.best => {
            bail!("{}: no checkpoint has been evaluated; see `dflash eval`", checkpoints.display())
        }
        (None, None) => bail!("{}: there is no checkpoint yet", checkpoints.display()),
    }
}

/// A drafter's directory itself, or that of a checkpoint.
fn drafter_in(source: &Path) -> Option<PathBuf> {
    [source.to_owned(), source.join(checkpoint::EXPORT)].into_iter().find(|dir| dir.join("config.json").is_file())
}

/// Prints the directory on stdout.
pub fn run(args: &Args) -> Result<ExitCode> {
    let from = drafter(args)?;
    checkpoint::copy(&from, &args.output).map_err(|error| exit::trainer(error.into()))?;
    say(&format!("exported {}; reloaded and compared", from.display()));
    output::print(format!("{}\n", args.output.display()).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
