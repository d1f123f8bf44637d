//! `dflash report`: where each lane's time went.

use crate::output::{OutputArg, check, say, write_file, write_file_with};
use crate::run_arg::RunsOfOne;
use crate::select_arg::SelectArg;
use anyhow::Context;
use dflash_reports::report::{Charts, Report, figures_csv, html, iterations_csv, markdown, stages_csv, table};
use dflash_reports::sources::Merged;
use dflash_reports::timeline::RunDir;
use std::path::Path;
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    runs: RunsOfOne,
    /// How to write it; `html` is one page with charts; `csv` is stages.csv, and with `-o DIR/` iterations.csv and
    /// figures.csv beside it
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,
    #[command(flatten)]
    select: SelectArg,
    #[command(flatten)]
    output: OutputArg,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Table,
    Csv,
    Json,
    Md,
    Html,
}

pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let runs = args.runs.resolve()?;
    let directory = args.output.directory().filter(|_| args.format == Format::Csv);
    match directory {
        Some(directory) => CSV_FILES.iter().try_for_each(|name| check_in(directory, name, args.output.force()))?,
        None => args.output.check()?,
    }
    let (report, merged) = Report::of_runs(&runs, &args.select.selection())?;
    if let Some(directory) = directory {
        write_csv_files(&runs, &report, &merged, directory, args.output.force())?;
        return Ok(ExitCode::SUCCESS);
    }
    let bytes = match args.format {
        Format::Table => table(&report, args.output.look()).into_bytes(),
        Format::Csv => stages_csv(&report.stages)?,
        Format::Json => report.json()?.into_bytes(),
        Format::Md => markdown(&report).into_bytes(),
        Format::Html => html(&report, &Charts::of(&report, &merged, &runs)).into_bytes(),
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

fn write_csv_files(
    runs: &[RunDir],
    report: &Report,
    merged: &Merged,
    directory: &Path,
    force: bool,
) -> anyhow::Result<()> {
    std::fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
    write_file(&directory.join(CSV_FILES[0]), &stages_csv(&report.stages)?, force)?;
    write_file_with(&directory.join(CSV_FILES[1]), force, |file| {
        let done = iterations_csv(runs, merged, file)?;
        if done.torn > 0 {
            say(&format!("dflash: warning: {} lines of iterations.csv are not whole and were left out", done.torn));
        }
        let recorded = merged.iterations();
        if recorded > done.iterations && report.losses.ended {
            let (found, missing) = (done.iterations, recorded - done.iterations);
            say(&format!("dflash: warning: iterations.csv holds {found} iterations, the timeline {missing} more"));
        }
        Ok(())
    })?;
    write_file(&directory.join(CSV_FILES[2]), &figures_csv(report)?, force)
}
