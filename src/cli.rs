//! The command line: what may be typed. Each subcommand's arguments stand in its own file.

use crate::{commands, help};
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
    /// Let the target answer the training prompts, and tokenise them into shards
    #[cfg(feature = "train")]
    Prepare(commands::prepare::Args),
    /// Train a drafter, recording where the time goes
    #[cfg(feature = "train")]
    Train(commands::train::Args),
    /// Measure a drafter's acceptance length (tau) by greedy draft-verify on held-out prompts
    #[cfg(feature = "train")]
    Eval(commands::eval::Args),
    /// Write a trained drafter as a directory that serving engines load, reloaded and compared
    #[cfg(feature = "train")]
    Export(commands::export::Args),
    /// Say what this installation can use: libtorch, CUDA, CPU features; check a model
    #[cfg(feature = "train")]
    Doctor(commands::doctor::Args),
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

impl Cli {
    /// The definition that help, completions and man pages come from.
    pub fn definition() -> clap::Command {
        help::grouped(Self::command())
    }

    /// Takes what was typed; help and mistakes end the process.
    pub fn take() -> Self {
        let matches = Self::definition().get_matches();
        Self::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
    }

    /// Whether the chosen subcommand works with tensors; the others read what a run has written.
    #[cfg(feature = "train")]
    pub fn computes(&self) -> bool {
        use Command::{Doctor, Eval, Export, Prepare, Train};
        matches!(self.command, Prepare(_) | Train(_) | Eval(_) | Export(_) | Doctor(_))
    }

    /// Runs the chosen subcommand.
    pub fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            #[cfg(feature = "train")]
            Command::Prepare(args) => commands::prepare::run(&args),
            #[cfg(feature = "train")]
            Command::Train(args) => commands::train::run(&args),
            #[cfg(feature = "train")]
            Command::Eval(args) => commands::eval::run(&args),
            #[cfg(feature = "train")]
            Command::Export(args) => commands::export::run(&args),
            #[cfg(feature = "train")]
            Command::Doctor(args) => commands::doctor::run(&args),
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
