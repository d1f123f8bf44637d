//! Which run is meant: the argument RUN, else the newest.

use anyhow::bail;
use dflash_reports::timeline::RunDir;
use std::path::{Path, PathBuf};

/// Where runs lie.
#[derive(clap::Args, Clone, Debug)]
pub struct RunsArg {
    /// Directory that holds the runs [default: $DFLASH_RUNS, else ./runs]
    #[arg(long, value_name = "DIR")]
    runs: Option<PathBuf>,
}

impl RunsArg {
    /// The directory: the option, else `$DFLASH_RUNS`, else `./runs`.
    pub fn directory(&self) -> PathBuf {
        self.runs.clone().unwrap_or_else(default_directory)
    }
}

/// `$DFLASH_RUNS`, else `./runs`.
fn default_directory() -> PathBuf {
    let variable = std::env::var_os("DFLASH_RUNS").filter(|dir| !dir.is_empty());
    variable.map_or_else(|| PathBuf::from("runs"), PathBuf::from)
}

/// One run.
#[derive(clap::Args, Clone, Debug)]
pub struct RunArg {
    /// Run directory, or its name under the runs [default: the newest run, one that is running first]
    run: Option<PathBuf>,
    #[command(flatten)]
    runs: RunsArg,
}

impl RunArg {
    /// What was typed.
    pub fn typed(&self) -> Option<&Path> {
        self.run.as_deref()
    }

    /// Finds the run.
    pub fn resolve(&self) -> anyhow::Result<RunDir> {
        let directory = self.runs.directory();
        self.run.as_ref().map_or_else(|| Ok(RunDir::newest(&directory)?), |run| open(&directory, run))
    }

    /// Finds another run, where this one is looked for.
    pub fn resolve_other(&self, run: &PathBuf) -> anyhow::Result<RunDir> {
        open(&self.runs.directory(), run)
    }
}

/// One run, or several that are looked at as one.
#[derive(clap::Args, Clone, Debug)]
pub struct RunsOfOne {
    /// Run directory, or its name under the runs; several are put on one clock, as ranks of one training [default: the
    /// newest run, one that is running first]
    run: Vec<PathBuf>,
    #[command(flatten)]
    runs: RunsArg,
}

impl RunsOfOne {
    /// Finds the runs; at least one.
    pub fn resolve(&self) -> anyhow::Result<Vec<RunDir>> {
        let directory = self.runs.directory();
        if self.run.is_empty() {
            return Ok(vec![RunDir::newest(&directory)?]);
        }
        let runs = self.run.iter().map(|run| open(&directory, run)).collect::<anyhow::Result<Vec<_>>>()?;
        let same = |run: &RunDir| std::fs::canonicalize(run.path()).ok();
        for (at, run) in runs.iter().enumerate() {
            if runs[..at].iter().any(|other| same(other).is_some() && same(other) == same(run)) {
                bail!("{} is named twice; name each run once", run.path().display());
            }
        }
        Ok(runs)
    }
}

/// A path, or a name under the runs.
fn open(directory: &Path, run: &PathBuf) -> anyhow::Result<RunDir> {
    let named = directory.join(run);
    let path = if !run.exists() && named.is_dir() { &named } else { run };
    Ok(RunDir::open(path)?)
}

/// A run by what was typed, looked for in `runs`, else where runs lie.
pub fn find(runs: Option<&PathBuf>, run: &Path) -> anyhow::Result<RunDir> {
    open(&runs.cloned().unwrap_or_else(default_directory), &run.to_owned())
}
