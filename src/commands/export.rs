//! `dflash export`: a trained drafter as a directory that serving engines load.

use crate::exit;
use crate::output::{self, say};
use crate::run_arg;
use anyhow::{Result, bail};
use dflash_reports::timeline::RunDir;
use dflash_trainer::checkpoint;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub struct Args {
    /// Run, checkpoint (RUN/checkpoints/step-NNNNNN), or a drafter's directory
    source: PathBuf,
    /// Directory to write, which must be empty or not there
    #[arg(short, long, value_name = "DIR")]
    output: PathBuf,
    /// The checkpoint of that step [default: the drafter at the run's end, else the newest checkpoint]
    #[arg(long, conflicts_with = "best")]
    step: Option<usize>,
    /// The checkpoint with the largest acceptance length that an evaluation has found
    #[arg(long)]
    best: bool,
    /// Directory that holds the runs [default: $DFLASH_RUNS, else ./runs]
    #[arg(long, value_name = "DIR")]
    runs: Option<PathBuf>,
}

impl Args {
    /// The directory of the drafter that is meant.
    fn drafter(&self) -> Result<PathBuf> {
        if let Some(drafter) = drafter_in(&self.source) {
            return Ok(drafter);
        }
        self.of_run(&run_arg::find(self.runs.as_ref(), &self.source)?)
    }

    fn of_run(&self, run: &RunDir) -> Result<PathBuf> {
        let checkpoints = run.checkpoints();
        let (stored, _) = checkpoint::list(&checkpoints);
        let end = checkpoints.join(checkpoint::EXPORT);
        let chosen = match self.step {
            Some(step) => stored.into_iter().find(|s| s.state.step == step),
            None if self.best => checkpoint::best(&stored).cloned(),
            None if end.is_dir() => return Ok(end),
            None => stored.into_iter().next_back(),
        };
        match (chosen, self.step) {
            (Some(stored), _) => Ok(stored.path.join(checkpoint::EXPORT)),
            (None, Some(step)) => bail!("{}: there is no checkpoint of step {step}", checkpoints.display()),
            (None, None) if self.best => {
                bail!("{}: no checkpoint has been evaluated; see `dflash eval`", checkpoints.display())
            }
            (None, None) => bail!("{}: there is no checkpoint yet", checkpoints.display()),
        }
    }
}

/// A drafter's directory itself, or that of a checkpoint.
fn drafter_in(source: &Path) -> Option<PathBuf> {
    [source.to_owned(), source.join(checkpoint::EXPORT)].into_iter().find(|dir| dir.join("config.json").is_file())
}

/// Prints the directory on stdout.
pub fn run(args: &Args) -> Result<ExitCode> {
    let from = args.drafter()?;
    checkpoint::copy(&from, &args.output).map_err(|error| exit::trainer(error.into()))?;
    say(&format!("exported {}; reloaded and compared", from.display()));
    output::print(format!("{}\n", args.output.display()).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
