//! `dflash train`: trains a drafter in a new run directory.

use crate::exit;
use crate::output::{self, say};
use crate::show::{Beside, LogFormat, Watcher};
use anyhow::Result;
use dflash_trainer::config::Config;
use dflash_trainer::session::{TrainOptions, train};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub struct Args {
    /// The configuration, e.g. configs/demo.toml
    config: PathBuf,
    /// Seed of everything random, instead of the configuration's
    #[arg(long)]
    seed: Option<u64>,
    /// Optimizer steps, instead of the configuration's
    #[arg(long)]
    steps: Option<usize>,
    /// Directory that holds the runs, instead of the configuration's
    #[arg(long, value_name = "DIR")]
    runs: Option<PathBuf>,
    /// Name of the run, instead of the configuration's
    #[arg(long)]
    name: Option<String>,
    /// Form of the log lines on stderr
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Show the training on one screen while it goes on, as `dflash top` does: q leaves the screen, Ctrl-C also ends the
    /// training
    #[arg(long)]
    top: bool,
}

impl Args {
    fn config(&self) -> Result<Config> {
        let mut config = Config::load(&self.config)?;
        config.run.seed = self.seed.unwrap_or(config.run.seed);
        config.train.steps = self.steps.unwrap_or(config.train.steps);
        config.run.dir = self.runs.clone().unwrap_or(config.run.dir);
        config.run.name = self.name.clone().unwrap_or(config.run.name);
        config.recheck(&self.config)?;
        Ok(config)
    }
}

/// Prints the run directory as the last line on stdout; everything else goes to stderr.
pub fn run(args: &Args) -> Result<ExitCode> {
    let config = args.config()?;
    let options = TrainOptions {
        command: std::env::args().collect(),
        config_name: args.config.display().to_string(),
        commit: option_env!("DFLASH_COMMIT").map(str::to_owned),
    };
    let watcher = Watcher::new(config.train.steps, args.log_format);
    let stop = exit::stop_flag()?;
    let mut view = None;
    if args.top {
        watcher.curtain().close();
    }
    let trained = train(&config, &options, &watcher, &|| stop.is_set(), |run| {
        watcher.note(&format!("run {}", run.path().display()));
        view = args.top.then(|| Beside::show(run, watcher.curtain()));
    });
    // The terminal is as before when the outcome is said.
    drop(view);
    watcher.finish();
    let trained = trained.map_err(exit::trainer)?;
    if let Some(trouble) = &trained.trouble {
        say(&format!("dflash: the recording is incomplete: {trouble}"));
    }
    say(&match &trained.drafter {
        Some(drafter) => format!("{} steps; drafter in {}", trained.steps, drafter.display()),
        None => format!("{} steps, simulated", trained.steps),
    });
    output::print(format!("{}\n", trained.run.path().display()).as_bytes())?;
    Ok(if trained.stopped { stop.exit_code().map_or(ExitCode::SUCCESS, ExitCode::from) } else { ExitCode::SUCCESS })
}
