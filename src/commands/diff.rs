//! `dflash diff`: did it get slower?

use crate::exit;
use crate::output::{OutputArg, say};
use crate::run_arg::RunsArg;
use crate::select_arg::SelectArg;
use dflash_reports::diff::{
    Calibration, Comparison, Correction, Options, Outcome, Renames, SPLITS, Select, Side, calibrate, compare, duration,
    probability, share,
};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub struct Args {
    /// The baseline: run directories, iterations.csv or stages.csv files, separated by commas
    #[arg(required_unless_present = "calibrate")]
    a: Option<PathBuf>,
    /// What is compared with it
    #[arg(required_unless_present = "calibrate")]
    b: Option<PathBuf>,
    #[command(flatten)]
    rule: RuleArgs,
    /// A stage's name on side A and on side B, if it changed (may be given several times)
    #[arg(long, value_name = "OLD=NEW")]
    map: Vec<String>,
    /// A file of lines OLD=NEW
    #[arg(long, value_name = "FILE")]
    map_file: Option<PathBuf>,
    #[command(flatten)]
    select: SelectArg,
    /// Instead of comparing, split one run against itself many times and print the rate of false alarms
    #[arg(long, value_name = "RUN", conflicts_with_all = ["a", "b", "map", "map_file"])]
    calibrate: Option<PathBuf>,
    /// How many times --calibrate splits
    #[arg(long, default_value_t = SPLITS, value_parser = splits, requires = "calibrate")]
    splits: usize,
    /// How to write it
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Exit with 3, not 0, if something is inconclusive, missing or new, or if hardware, driver or config differ
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    runs: RunsArg,
    #[command(flatten)]
    output: OutputArg,
}

/// When a change counts.
#[derive(clap::Args, Debug)]
struct RuleArgs {
    /// Changes below this are none, such as 3% or 0.03
    #[arg(long, default_value = "3%", allow_hyphen_values = true, value_parser = threshold)]
    threshold: f64,
    /// Neither are changes shorter than this
    #[arg(long, default_value = "50us", allow_hyphen_values = true, value_parser = floor)]
    floor: f64,
    /// With one run a side, a regression must be larger by this to exit with 1: what runs of the same program differ by
    #[arg(long, default_value = "5%", allow_hyphen_values = true, value_parser = run_noise)]
    run_noise: f64,
    /// Probability of a false alarm in the whole comparison
    #[arg(long, default_value = "0.05", allow_hyphen_values = true, value_parser = alpha)]
    alpha: f64,
    /// How that is kept over all lanes and stages: holm bounds any false alarm, bh the share of false ones
    #[arg(long, value_enum, default_value_t = CorrectionArg::Holm)]
    correction: CorrectionArg,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum CorrectionArg {
    Holm,
    Bh,
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

fn floor(text: &str) -> dflash_reports::Result<f64> {
    duration("--floor", text)
}

fn splits(text: &str) -> Result<usize, String> {
    text.parse().ok().filter(|count| (1..=100_000).contains(count)).ok_or_else(|| "give 1 to 100000".to_owned())
}

fn alpha(text: &str) -> dflash_reports::Result<f64> {
    probability("--alpha", text)
}

impl RuleArgs {
    fn options(&self) -> Options {
        let correction = match self.correction {
            CorrectionArg::Holm => Correction::Holm,
            CorrectionArg::Bh => Correction::Bh,
        };
        let (threshold, floor_ns) = (self.threshold, self.floor);
        Options { threshold, floor_ns, run_noise: self.run_noise, alpha: self.alpha, correction }
    }
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    args.output.check()?;
    let options = args.rule.options();
    let select = Select::from(args.select.selection());
    if let Some(run) = &args.calibrate {
        return calibrated(args, &calibrate(&args.named(run), &select, &options, args.splits)?);
    }
    let sides = [&args.a, &args.b].map(|side| side.as_deref().map_or_else(Vec::new, |side| args.paths(side)));
    let (mut a, b) = Side::read_both(&sides[0], &sides[1], &select)?;
    args.renames()?.apply(&mut a, &b)?;
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

fn calibrated(args: &Args, found: &Calibration) -> anyhow::Result<ExitCode> {
    let text = match args.format {
        Format::Table => found.table(),
        Format::Json => found.json()?,
        Format::Md => found.markdown(),
        Format::Csv => found.csv(),
    };
    args.output.write(text.as_bytes())?;
    if found.cries_wolf() {
        say(
            "dflash: warning: alarms are false more often than alpha says; raise --threshold, or give several runs a side",
        );
        return Ok(ExitCode::from(if args.strict { exit::INCONCLUSIVE } else { exit::FINE }));
    }
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// A path with a comma in it is taken as it is if it exists.
    fn paths(&self, side: &Path) -> Vec<PathBuf> {
        match side.to_str() {
            Some(text) if !side.exists() && text.contains(',') => {
                text.split(',').filter(|path| !path.is_empty()).map(|path| self.named(Path::new(path))).collect()
            }
            _ => vec![self.named(side)],
        }
    }

    /// A path, or the name of a run under the runs.
    fn named(&self, path: &Path) -> PathBuf {
        let named = self.runs.directory().join(path);
        if !path.exists() && named.is_dir() { named } else { path.to_owned() }
    }

    fn renames(&self) -> anyhow::Result<Renames> {
        let mut renames = Renames::default();
        self.map.iter().try_for_each(|map| renames.add(map))?;
        if let Some(file) = &self.map_file {
            renames.add_file(file)?;
        }
        Ok(renames)
    }
}

fn exit_code(comparison: &Comparison, strict: bool) -> u8 {
    let comparable = comparison.comparable();
    if !comparable {
        let differing: Vec<&str> =
            comparison.facts.iter().filter(|fact| fact.matters).map(|fact| fact.what.as_str()).collect();
        let what = dflash_reports::text::harmless(&differing.join(", "));
        say(&format!("dflash: warning: the sides differ in more than the program: {what}"));
    }
    match comparison.outcome {
        Outcome::Regressed => exit::REGRESSION,
        Outcome::Fine if comparable || !strict => exit::FINE,
        Outcome::Fine => exit::INCONCLUSIVE,
        Outcome::Inconclusive => {
            say(&format!("dflash: warning: {}", comparison.headline()));
            if strict { exit::INCONCLUSIVE } else { exit::FINE }
        }
    }
}
