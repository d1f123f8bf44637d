//! What `dflash export` takes.

use std::path::PathBuf;

/// Options and arguments.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Run, checkpoint (RUN/checkpoints/step-NNNNNN), or a drafter's directory
    pub source: PathBuf,
    /// Directory to write, which must be empty or not there
    #[arg(short, long, value_name = "DIR")]
    pub output: PathBuf,
    /// The checkpoint of that step [default: the drafter at the run's end, else the newest checkpoint]
    #[arg(long, conflicts_with = "best")]
    pub step: Option<usize>,
    /// The checkpoint with the largest acceptance length that an evaluation has found
    #[arg(long)]
    pub best: bool,
    /// Directory that holds the runs [default: $DFLASH_RUNS, else ./runs]
    #[arg(long, value_name = "DIR")]
    pub runs: Option<PathBuf>,
}
