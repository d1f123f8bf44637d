//! `dflash runs`: which runs there are.

use crate::output::OutputArg;
use crate::run_arg::RunsArg;
use anyhow::bail;
use dflash_reports::runs::list;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    runs: RunsArg,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    #[command(flatten)]
    output: OutputArg,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Table,
    Json,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.output.check()?;
    let directory = args.runs.directory();
    if !directory.is_dir() {
        bail!(
            "{} is no directory; start a run with `dflash train`, or name a directory with --runs",
            directory.display()
        );
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    let runs = list(&directory, i64::try_from(now).unwrap_or(i64::MAX))?;
    let text = match args.format {
        Format::Table => runs.table(args.output.look()),
        Format::Json => runs.json()?,
    };
    args.output.write(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
