//! The command line: what may be typed. Each subcommand's arguments stand in its own file.

use crate::args::Compute;
use crate::{commands, exit, help};
use anyhow::Result;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;

/// Trains DFlash drafters, and says where every millisecond of the training went.
///
/// Exit codes: 0 fine, 1 regression found, 2 bad input or usage, 3 inconclusive (diff --strict),
/// 4 failed while running, 129/130/143 after a signal.
#[derive(Parser, Debug)]
#[command(name = "dflash", version, propagate_version = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    #[command(flatten)]
    Compute(Compute),
    /// List the runs with their state, length, tokens/s and tau
    Runs(commands::runs::Args),
    /// Watch a run live, or look at a finished one
    Top(commands::top::Args),
    /// Print where each lane's time went
    Report(commands::report::Args),
    /// Draw a flame graph of where a run's time went: wall, device or CPU time, or the change between two runs
    Flamegraph(commands::flamegraph::Args),
    /// Write a run as a trace for ui.perfetto.dev, or as Chrome's JSON
    Trace(commands::trace::Args),
    /// Compare two runs, or two CSV reports, and find regressions
    Diff(commands::diff::Args),
    /// Look into a run that goes on, and ask things of it
    Ctl(commands::ctl::Args),
    /// Print a run's records, or only its totals
    Dump(commands::dump::Args),
    /// Print completions for a shell, or write the man pages
    Completions(commands::completions::Args),
}

/// Does what was typed, and says how it went. What reads a run is here; `compute` does the rest.
pub fn main(compute: impl FnOnce(&Compute) -> Result<ExitCode>) -> ExitCode {
    let cli = Cli::take();
    exit::without_panics(|| cli.run(compute)).unwrap_or_else(|error| exit::report(&error))
}

impl Cli {
    /// The definition that help, completions and man pages come from.
    fn definition() -> clap::Command {
        help::grouped(Self::command())
    }

    /// Takes what was typed; help and mistakes end the process.
    fn take() -> Self {
        let matches = Self::definition().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Runs the chosen subcommand; `compute` what needs libtorch.
    fn run(self, compute: impl FnOnce(&Compute) -> Result<ExitCode>) -> Result<ExitCode> {
        match self.command {
            Command::Compute(what) => compute(&what),
            Command::Runs(args) => commands::runs::run(&args),
            Command::Top(args) => commands::top::run(&args),
            Command::Report(args) => commands::report::run(&args),
            Command::Flamegraph(args) => commands::flamegraph::run(&args),
            Command::Trace(args) => commands::trace::run(&args),
            Command::Diff(args) => commands::diff::run(&args),
            Command::Ctl(args) => commands::ctl::run(&args),
            Command::Dump(args) => commands::dump::run(&args),
            Command::Completions(args) => commands::completions::run(&args, Self::definition()),
        }
    }
}
