//! `dflash report`: where each lane's time went.

use crate::output::{OutputArg, check, write_file};
use crate::run_arg::RunArg;
use anyhow::Context;
use dflash_reports::report::{Report, figures_csv, markdown, stages_csv, table};
use dflash_reports::stages::Window;
use dflash_reports::timeline::RunDir;
use std::path::Path;
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    run: RunArg,
    /// How to write it; `csv` is stages.csv, and with `-o DIR/` iterations.csv and figures.csv beside it
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    /// Only this lane, such as drafter:0 (may be given several times)
    #[arg(long = "lane", value_name = "LANE")]
    lanes: Vec<String>,
    #[command(flatten)]
    output: OutputArg,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Table,
    Csv,
    Json,
    Md,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let run = args.run.resolve()?;
    let directory = args.output.directory().filter(|_| args.format == Format::Csv);
    match directory {
        Some(directory) => CSV_FILES.iter().try_for_each(|name| check_in(directory, name, args.output.force()))?,
        None => args.output.check()?,
    }
    let window = Window { lanes: args.lanes.clone(), ..Window::default() };
    let report = Report::of_run(&run, &window)?;
    if let Some(directory) = directory {
        write_csv_files(&run, &report, directory, args.output.force())?;
        return Ok(ExitCode::SUCCESS);
    }
    let bytes = match args.format {
        Format::Table => table(&report, args.output.look()).into_bytes(),
        Format::Csv => stages_csv(&report.stages)?,
        Format::Json => report.json()?.into_bytes(),
        Format::Md => markdown(&report).into_bytes(),
    };
    args.output.write(&bytes)?;
    Ok(ExitCode::SUCCESS)
}

/// What `--format csv -o DIR/` writes.
const CSV_FILES: [&str; 3] = ["stages.csv", "iterations.csv", "figures.csv"];

/// A directory that is yet to be made cannot hold anything.
fn check_in(directory: &Path, name: &str, force: bool) -> anyhow::Result<()> {
    if directory.is_dir() { check(&directory.join(name), force) } else { Ok(()) }
}

fn write_csv_files(run: &RunDir, report: &Report, directory: &Path, force: bool) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    let source = run.iterations_csv();
    let iterations = std::fs::read(&source).with_context(|| format!("cannot read {}", source.display()))?;
    write_file(&directory.join(CSV_FILES[0]), &stages_csv(&report.stages)?, force)?;
    write_file(&directory.join(CSV_FILES[1]), whole_lines(&iterations), force)?;
    write_file(&directory.join(CSV_FILES[2]), &figures_csv(report)?, force)
}

/// A running training may be in the middle of a line.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    &bytes[..end]
}
