//! `dflash train`: trains a drafter in a new run directory, or goes on in an old one.

use crate::exit;
use crate::output::{self, say};
use crate::run_arg;
use crate::show::{LogFormat, Watcher};
use anyhow::{Result, bail};
use dflash_reports::timeline::RunDir;
use dflash_trainer::config::Config;
use dflash_trainer::session::{TrainOptions, run_config, train, unfinished};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args, Debug)]
pub struct Args {
    /// The configuration, e.g. configs/demo.toml [default with --resume RUN: the run's own]
    #[arg(required_unless_present = "resume")]
    config: Option<PathBuf>,
    /// Go on with a run from its newest checkpoint, in the same directory; `auto`: with the newest unfinished run of the
    /// configuration's name, if there is one
    #[arg(long, value_name = "RUN|auto")]
    resume: Option<PathBuf>,
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
}

impl Args {
    /// The configuration, and what it is called in messages.
    fn config(&self) -> Result<(Config, PathBuf)> {
        let (mut config, name) = match (&self.config, &self.resume) {
            (Some(path), _) => (Config::load(path)?, path.clone()),
            (None, Some(run)) if !is_auto(run) => (run_config(&self.run(run)?)?, run.join("run.json")),
            _ => bail!("--resume auto needs a configuration: it names the runs to look among"),
        };
        config.run.seed = self.seed.unwrap_or(config.run.seed);
        config.train.steps = self.steps.unwrap_or(config.train.steps);
        config.run.dir = self.runs.clone().unwrap_or(config.run.dir);
        config.run.name = self.name.clone().unwrap_or(config.run.name);
        config.recheck(&name)?;
        Ok((config, name))
    }

    fn options(&self, config: &Config, name: &Path) -> Result<TrainOptions> {
        let resume = match &self.resume {
            Some(run) if is_auto(run) => unfinished(&config.run.dir, &config.run.name).map_err(exit::trainer)?,
            Some(run) => Some(self.run(run)?),
            None => None,
        };
        let given = self.steps.map(|_| "train.steps").into_iter().collect();
        Ok(TrainOptions { command: std::env::args().collect(), config_name: name.display().to_string(), resume, given })
    }

    /// A path, or a name under the runs.
    fn run(&self, run: &Path) -> Result<RunDir> {
        run_arg::open(&self.runs.clone().unwrap_or_else(run_arg::default_directory), run)
    }
}

fn is_auto(run: &Path) -> bool {
    run.as_os_str() == "auto"
}

/// Prints the run directory as the last line on stdout; everything else goes to stderr.
pub fn run(args: &Args) -> Result<ExitCode> {
    let (config, name) = args.config()?;
    let options = args.options(&config, &name)?;
    let watcher = Watcher::new(config.train.steps, args.log_format);
    let stop = exit::stop_flag()?;
    let trained = train(&config, &options, &watcher, &|| stop.is_set(), |run| {
        watcher.note(&format!("run {}", run.path().display()))
    });
    watcher.finish();
    let trained = trained.map_err(exit::trainer)?;
    if let Some(trouble) = &trained.trouble {
        say(&format!("dflash: the recording is incomplete: {trouble}"));
    }
    say(&format!("{} steps; drafter in {}", trained.steps, trained.drafter.display()));
    output::print(format!("{}\n", trained.run.path().display()).as_bytes())?;
    Ok(if trained.stopped { stop.exit_code().map_or(ExitCode::SUCCESS, ExitCode::from) } else { ExitCode::SUCCESS })
}
