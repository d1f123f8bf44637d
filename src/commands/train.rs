//! `dflash train`: trains a drafter in a new run directory, or goes on in an old one.

use crate::exit;
use crate::output::{self, say};
use crate::run_arg;
use crate::show::{Beside, LogFormat, Watcher};
use anyhow::{Result, bail};
use dflash_reports::timeline::RunDir;
use dflash_sys::StopFlag;
use dflash_trainer::config::Config;
use dflash_trainer::ranks::Launch;
use dflash_trainer::session::{TrainOptions, Trained, run_config, train, unfinished};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

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
    /// End in good time, with a checkpoint and exit code 0, once so much time has passed: 90m, 12h, 30s, or [D-]HH:MM:SS
    #[arg(long, value_name = "TIME", value_parser = time_limit)]
    time_limit: Option<Duration>,
    /// Another value for a key of the configuration, such as train.learning_rate=1e-4 (may be given several times). With
    /// --resume: the learning rate, what shapes it over the steps, clipping and weight decay can be changed, from here on
    #[arg(long = "set", value_name = "SECTION.KEY=VALUE")]
    set: Vec<String>,
    /// Form of the log lines on stderr
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    log_format: LogFormat,
    /// Show the training on one screen while it goes on, as `dflash top` does: q leaves the screen, Ctrl-C also ends the
    /// training
    #[arg(long)]
    top: bool,
}

impl Args {
    /// The configuration, and what it is called in messages.
    fn config(&self) -> Result<(Config, PathBuf)> {
        let (mut config, name) = match (&self.config, &self.resume) {
            (Some(path), _) => (Config::load(path)?, path.clone()),
            (None, Some(run)) if !is_auto(run) => (run_config(&self.run(run)?)?, run.join("run.json")),
            _ => bail!("--resume auto needs a configuration: it names the runs to look among"),
        };
        for assignment in &self.set {
            config = config.with(assignment)?;
        }
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
        let steps = self.steps.map(|_| "train.steps".to_owned());
        let name_of = |assignment: &String| Some(assignment.split_once('=')?.0.trim().to_owned());
        let given = self.set.iter().filter_map(name_of).chain(steps).collect();
        Ok(TrainOptions {
            command: std::env::args().collect(),
            config_name: name.display().to_string(),
            commit: option_env!("DFLASH_COMMIT").map(str::to_owned),
            resume,
            given,
            launch: Launch::from_env()?,
        })
    }

    /// A path, or a name under the runs.
    fn run(&self, run: &Path) -> Result<RunDir> {
        run_arg::find(self.runs.as_ref(), run)
    }
}

/// A number with s, m or h, or a queueing system's [D-]HH:MM:SS.
fn time_limit(text: &str) -> Result<Duration, String> {
    let wrong = || format!("`{text}` is no time: write 90m, 12h, 30s, or [D-]HH:MM:SS");
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let sum = |parts: &[(u64, u64)]| {
        parts.iter().try_fold(0u64, |sum, (count, unit)| sum.checked_add(count.checked_mul(*unit)?)).ok_or_else(wrong)
    };
    let seconds = match text.split_at_checked(text.len().saturating_sub(1)) {
        Some((count, "s")) => number(count)?,
        Some((count, "m")) => sum(&[(number(count)?, 60)])?,
        Some((count, "h")) => sum(&[(number(count)?, 3_600)])?,
        _ => {
            let (days, clock) = text.split_once('-').unwrap_or(("0", text));
            let [hours, minutes, seconds] = clock.split(':').collect::<Vec<_>>()[..] else { return Err(wrong()) };
            let counts = [number(days)?, number(hours)?, number(minutes)?, number(seconds)?];
            sum(&counts.into_iter().zip([86_400, 3_600, 60, 1]).collect::<Vec<_>>())?
        }
    };
    Ok(Duration::from_secs(seconds))
}

fn is_auto(run: &Path) -> bool {
    run.as_os_str() == "auto"
}

/// Prints the run directory as the last line on stdout; everything else goes to stderr.
pub fn run(args: &Args) -> Result<ExitCode> {
    let began = Instant::now();
    let (config, name) = args.config()?;
    let options = args.options(&config, &name)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_people_and_queueing_systems_write_them() {
        let seconds = |text| time_limit(text).map(|limit| limit.as_secs());
        assert_eq!(["30s", "90m", "12h"].map(seconds), [Ok(30), Ok(5_400), Ok(43_200)]);
        assert_eq!(["01:02:03", "2-00:00:10"].map(seconds), [Ok(3_723), Ok(172_810)]);
        for wrong in ["", "h", "90", "1:2", "1.5h", "-1s", "é", "18446744073709551615h", "9999999999999999-00:00:00"] {
            assert!(time_limit(wrong).unwrap_err().contains("is no time"), "{wrong}");
        }
    }
}
