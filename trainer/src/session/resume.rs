//! Going on with a run: the same directory, another attempt.

use crate::checkpoint::{self, CheckpointError, Identity, RunLock, Snapshot};
use crate::config::Config;
use crate::error::TrainError;
use dflash_profiler::timeline::{Manifest, RunDir, State};
use std::path::{Path, PathBuf};

/// A run that a training goes on in.
pub(super) struct Resumed {
    pub(super) run: RunDir,
    /// Its run.json as the last attempt left it.
    pub(super) manifest: Manifest,
    pub(super) snapshot: Snapshot,
    /// What a user should know about it.
    pub(super) notes: Vec<String>,
    pub(super) lock: RunLock,
    /// The checkpoint after the last step, if the run did not get further than that.
    pub(super) complete: Option<PathBuf>,
}

/// Opens a run to go on in it, if its newest whole checkpoint was made from the same. `given` are keys that were changed
/// on purpose.
pub(super) fn open(
    run: &RunDir,
    config: &Config,
    identity: &Identity,
    given: &[String],
) -> Result<Resumed, TrainError> {
    let lock = RunLock::take(run.path())?;
    let checkpoints = run.checkpoints();
    checkpoint::recover(&checkpoints).map_err(CheckpointError::io("clear up", &checkpoints))?;
    let (path, snapshot, damaged) = checkpoint::newest(&checkpoints)?;
    let differences = snapshot.state.identity.differences(identity, given);
    if !differences.is_empty() {
        return Err(CheckpointError::Other { path, differences }.into());
    }
    let (steps, manifest) = (snapshot.state.step, run.manifest()?);
    let complete = steps == config.train.steps && manifest.state != State::Finished;
    if steps >= config.train.steps && !complete {
        return Err(CheckpointError::Finished { run: run.path().into(), steps }.into());
    }
    let mut notes: Vec<_> = damaged.iter().map(|error| format!("warning: {error}")).collect();
    // Only now is it sure that the run goes on without them.
    notes.extend(checkpoint::set_aside(&damaged).iter().map(|error| format!("warning: {error}")));
    notes.push(format!("resumed after step {steps}, from {}", path.display()));
    notes.extend(snapshot.state.identity.changes(identity, given));
    if snapshot.state.loader.arrival {
        notes.push(INEXACT.to_owned());
    }
    Ok(Resumed { manifest, run: run.clone(), snapshot, notes, lock, complete: complete.then_some(path) })
}

/// What is told of a checkpoint that nobody can go on from exactly.
const INEXACT: &str = "warning: not resumed exactly: with several targets and [pipeline] order = \"arrival\", some of the \
                       batches that were under way are trained on twice and others not at all in this epoch; order = \
                       \"strict\" goes on exactly";

/// The configuration that a run was made with; `run.dir` is where it lies now.
///
/// # Errors
/// Its run.json holds none.
pub fn run_config(run: &RunDir) -> Result<Config, TrainError> {
    let config = run.manifest()?.config;
    let mut config: Config = serde_json::from_value(config)
        .map_err(|e| TrainError::NoConfig { run: run.path().to_owned(), problem: e.to_string() })?;
    config.run.dir = run.path().parent().map_or_else(PathBuf::new, Path::to_owned);
    Ok(config)
}

/// The run that `--resume auto` goes on in: the newest of that name that has a checkpoint and did not come to its end.
/// `None`: there is none, or a later one of that name did; then a new run begins.
///
/// # Errors
/// The directory cannot be read.
pub fn unfinished(runs: &Path, name: &str) -> Result<Option<RunDir>, TrainError> {
    if !runs.exists() {
        return Ok(None);
    }
    for run in RunDir::list(runs)? {
        let manifest = run.manifest()?;
        if manifest.name != name {
            continue;
        }
        if manifest.state == State::Finished {
            return Ok(None);
        }
        if !checkpoint::list(&run.checkpoints()).0.is_empty() {
            return Ok(Some(run));
        }
    }
    Ok(None)
}
