//! `dflash train`: trains a drafter in a new run directory, or goes on in an old one.

use crate::exit;
use crate::show::{Beside, Watcher};
use anyhow::{Result, anyhow, bail};
use dflash::args::train::Args;
use dflash::build;
use dflash::output::{self, say};
use dflash::run_arg;
use dflash_reports::timeline::RunDir;
use dflash_sys::StopFlag;
use dflash_trainer::config::Config;
use dflash_trainer::ranks::Launch;
use dflash_trainer::session::{TrainOptions, Trained, run_config, train, unfinished};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

/// The configuration, and what it is called in messages.
fn config(args: &Args) -> Result<(Config, PathBuf)> {
    let (mut config, name) = match (&args.config, &args.resume) {
        (Some(path), _) => (Config::load(path)?, path.clone()),
        (None, Some(run)) if !is_auto(run) => (run_config(&named(args, run)?)?, run.join("run.json")),
        _ => bail!("--resume auto needs a configuration: it names the runs to look among"),
    };
    for assignment in &args.set {
        config = config.with(assignment)?;
    }
    config.run.seed = args.seed.unwrap_or(config.run.seed);
    config.train.steps = args.steps.unwrap_or(config.train.steps);
    config.run.dir = args.runs.clone().unwrap_or(config.run.dir);
    config.run.name = args.name.clone().unwrap_or(config.run.name);
    config.recheck(&name)?;
    Ok((config, name))
}

fn options(args: &Args, config: &Config, name: &Path) -> Result<TrainOptions> {
    let resume = match &args.resume {
        Some(run) if is_auto(run) => unfinished(&config.run.dir, &config.run.name).map_err(exit::trainer)?,
        Some(run) => Some(named(args, run)?),
        None => None,
    };
    let steps = args.steps.map(|_| "train.steps".to_owned());
    let name_of = |assignment: &String| Some(assignment.split_once('=')?.0.trim().to_owned());
    let given = args.set.iter().filter_map(name_of).chain(steps).collect();
    Ok(TrainOptions {
        command: typed()?,
        config_name: name.display().to_string(),
        commit: build::COMMIT.map(str::to_owned),
        resume,
        given,
        launch: Launch::from_env()?,
    })
}

/// The command as it was typed, for run.json.
fn typed() -> Result<Vec<String>> {
    let text = |word: OsString| {
        word.into_string().map_err(|word| {
            anyhow!(
                "the argument `{}` is not UTF-8, and run.json keeps the command as text: rename the file",
                word.display()
            )
        })
    };
    std::env::args_os().map(text).collect()
}

/// A path, or a name under the runs.
fn named(args: &Args, run: &Path) -> Result<RunDir> {
    run_arg::find(args.runs.as_ref(), run)
}

fn is_auto(run: &Path) -> bool {
    run.as_os_str() == "auto"
}

/// Prints the run directory as the last line on stdout; everything else goes to stderr.
pub fn run(args: &Args) -> Result<ExitCode> {
    let began = Instant::now();
    let (config, name) = config(args)?;
    let options = options(args, &config, &name)?;
    let watcher = Watcher::new(config.train.steps, args.log_format);
    let stop = exit::stop_flag()?;
    let out_of_time = || args.time_limit.is_some_and(|limit| began.elapsed() >= limit);
    let mut view = None;
    if args.top {
        watcher.curtain().close();
    }
    let trained = train(&config, &options, &watcher, &|| stop.is_set() || out_of_time(), |run| {
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
    if trained.rank > 0 {
        // Rank 0 says the rest for all.
        return Ok(exit_code(&trained, stop));
    }
    say(&match &trained.drafter {
        Some(drafter) => format!("{} steps; drafter in {}", trained.steps, drafter.display()),
        None if config.random.is_on() => format!("{} steps on random weights; no drafter is kept", trained.steps),
        None => format!("{} steps, simulated", trained.steps),
    });
    let told = output::print(format!("{}\n", trained.run.path().display()).as_bytes());
    // Who hung up reads nothing any more; that he did is the better reason for the end.
    if stopped_by(&trained, stop).is_none() {
        told?;
    }
    Ok(exit_code(&trained, stop))
}

/// The exit code of the signal that stopped a training.
fn stopped_by(trained: &Trained, stop: StopFlag) -> Option<u8> {
    if trained.stopped { stop.exit_code() } else { None }
}

/// A training that a signal stopped ends with the signal's code.
fn exit_code(trained: &Trained, stop: StopFlag) -> ExitCode {
    stopped_by(trained, stop).map_or(ExitCode::SUCCESS, ExitCode::from)
}
