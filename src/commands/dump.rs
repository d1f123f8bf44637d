//! `dflash dump`: a run's records as lines.

use crate::run_arg::RunArg;
use dflash_reports::{dump, timeline};
use std::io::{BufWriter, Write};
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// Only the counts: what was read, what was lost, whether the stream is whole
    #[arg(long)]
    totals: bool,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let timeline = timeline::read(&args.run.resolve()?)?;
    let mut out = BufWriter::new(std::io::stdout().lock());
    if args.totals {
        dump::totals(&timeline, &mut out)?;
    } else {
        dump::records(&timeline, &mut out)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
