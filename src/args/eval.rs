//! What `dflash eval` takes.

use crate::run_arg::RunArg;
use std::path::PathBuf;

/// Options and arguments.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Whose drafter.
    #[command(flatten)]
    pub run: RunArg,
    /// Another configuration than the run's own; a drafter's directory that is of no run needs one
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Held-out prompts for the trained drafter, instead of the configuration's
    #[arg(long, value_name = "N")]
    pub prompts: Option<std::num::NonZeroUsize>,
    /// Held-out prompts for each of the two controls (untrained; features zeroed); 0 = no controls
    #[arg(long, value_name = "N")]
    pub control_prompts: Option<usize>,
    /// Draw tokens at this temperature instead of the configuration's (0: greedy)
    #[arg(long, value_name = "T", value_parser = temperature)]
    pub temperature: Option<f64>,
    /// Print the figures as JSON
    #[arg(long)]
    pub json: bool,
}

fn temperature(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|t: &f64| t.is_finite() && *t >= 0.0);
    number.ok_or_else(|| format!("`{text}` is no temperature: write 0 (greedy) or a number above"))
}
