//! `dflash diff`: did it get slower?

use crate::exit;
use crate::output::{OutputArg, say};
use dflash_reports::diff::{Comparison, Options, Outcome, Side, compare, share};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub struct Args {
    /// The baseline: run directories, iterations.csv or stages.csv files, separated by commas
    a: PathBuf,
    /// What is compared with it
    b: PathBuf,
    /// Changes below this are none, such as 3% or 0.03
    #[arg(long, default_value = "3%", allow_hyphen_values = true, value_parser = threshold)]
    threshold: f64,
    /// With one run a side, a change must be larger by this: what runs of the same program differ by
    #[arg(long, default_value = "5%", allow_hyphen_values = true, value_parser = run_noise)]
    run_noise: f64,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Exit with 3, not 0, if something is inconclusive, missing or new
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    output: OutputArg,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Table,
    Json,
    Md,
    Csv,
}

fn threshold(text: &str) -> dflash_reports::Result<f64> {
    share("--threshold", text)
}

fn run_noise(text: &str) -> dflash_reports::Result<f64> {
    share("--run-noise", text)
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.output.check()?;
    let options = Options { threshold: args.threshold, run_noise: args.run_noise, ..Options::default() };
    let (a, b) = (Side::read(&paths(&args.a))?, Side::read(&paths(&args.b))?);
    let comparison = compare(&a, &b, &options)?;
    let bytes = match args.format {
        Format::Table => comparison.table(args.output.look()).into_bytes(),
        Format::Json => comparison.json()?.into_bytes(),
        Format::Md => comparison.markdown().into_bytes(),
        Format::Csv => comparison.csv()?,
    };
    args.output.write(&bytes)?;
    Ok(ExitCode::from(exit_code(&comparison, args.strict)))
}

/// A path with a comma in it is taken as it is if it exists.
fn paths(side: &Path) -> Vec<PathBuf> {
    match side.to_str() {
        Some(text) if !side.exists() => text.split(',').filter(|path| !path.is_empty()).map(PathBuf::from).collect(),
        _ => vec![side.to_owned()],
    }
}

fn exit_code(comparison: &Comparison, strict: bool) -> u8 {
    match comparison.outcome {
        Outcome::Fine => exit::FINE,
        Outcome::Regressed => exit::REGRESSION,
        Outcome::Inconclusive if strict => exit::INCONCLUSIVE,
        Outcome::Inconclusive => {
            say(&format!("dflash: warning: {}", comparison.headline()));
            exit::FINE
        }
    }
}
