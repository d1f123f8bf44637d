//! The run directory that a training works in: a new one, or one that it goes on in.

use super::resume::{self, Resumed};
use super::together::Together;
use super::train::TrainOptions;
use crate::checkpoint::{self, Identity, RunLock, Snapshot};
use crate::config::Config;
use crate::error::TrainError;
use dflash_profiler::timeline::{Manifest, RunDir};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where a training works.
pub(super) struct Begin {
    pub(super) run: RunDir,
    pub(super) attempt: u32,
    pub(super) snapshot: Option<Snapshot>,
    pub(super) notes: Vec<String>,
    /// Rank 0 has it for all.
    pub(super) lock: Option<RunLock>,
    /// The checkpoint after the last step, if only the end of the run is left to do.
    pub(super) complete: Option<PathBuf>,
}

impl Begin {
    /// A new run, or the one to go on in.
    pub(super) fn new(
        config: &Config,
        options: &TrainOptions,
        identity: &Identity,
        on_gpu: bool,
    ) -> Result<Self, TrainError> {
        let mut manifest = manifest(config, options, on_gpu);
        let Some(run) = &options.resume else {
            let run = RunDir::create(&config.run.dir, &config.run.name, manifest)?;
            let lock = RunLock::take(run.path())?;
            return Ok(Self { run, attempt: 1, snapshot: None, notes: Vec::new(), lock: Some(lock), complete: None });
        };
        let Resumed { run, manifest: before, snapshot, notes, lock, complete } =
            resume::open(run, config, identity, &options.given)?;
        if complete.is_some() {
            return Ok(Self { run, attempt: before.attempt, snapshot: None, notes, lock: Some(lock), complete });
        }
        (manifest.name, manifest.attempt, manifest.results) = (before.name, before.attempt + 1, before.results);
        let attempt = manifest.attempt;
        run.begin_attempt(manifest)?;
        Ok(Self { run, attempt, snapshot: Some(snapshot), notes, lock: Some(lock), complete })
    }

    /// Rank 0 makes or opens the run, the others follow it.
    pub(super) fn together(
        together: &Together,
        config: &Config,
        options: &TrainOptions,
        identity: &Identity,
        on_gpu: bool,
    ) -> Result<Self, TrainError> {
        Self::by_first(together, || Self::new(config, options, identity, on_gpu))
    }

    /// The same for a simulation, of which nobody goes on in a run.
    pub(super) fn simulated(together: &Together, config: &Config, options: &TrainOptions) -> Result<Self, TrainError> {
        Self::by_first(together, || {
            let run = RunDir::create(&config.run.dir, &config.run.name, manifest(config, options, false))?;
            Ok(Self { run, attempt: 1, snapshot: None, notes: Vec::new(), lock: None, complete: None })
        })
    }

    fn by_first(together: &Together, make: impl FnOnce() -> Result<Self, TrainError>) -> Result<Self, TrainError> {
        if together.is_first() {
            let own = make()?;
            together.told(Some(Told::of(&own)))?;
            return Ok(own);
        }
        let nothing = || TrainError::Lane { lane: "rank 0".to_owned(), cause: "it named no run".to_owned() };
        together.told::<Told>(None)?.ok_or_else(nothing)?.follow()
    }
}

/// Where rank 0 works.
#[derive(Serialize, Deserialize)]
struct Told {
    run: PathBuf,
    attempt: u32,
    step: Option<usize>,
    complete: Option<PathBuf>,
}

impl Told {
    fn of(begin: &Begin) -> Self {
        // The others may have been started elsewhere.
        let run = begin.run.path();
        let run = run.canonicalize().unwrap_or_else(|_| run.to_owned());
        let step = begin.snapshot.as_ref().map(|snapshot| snapshot.state.step);
        Self { run, attempt: begin.attempt, step, complete: begin.complete.clone() }
    }

    /// The same run, and the same checkpoint.
    fn follow(self) -> Result<Begin, TrainError> {
        let run = RunDir::open(&self.run)?;
        let load = |step| checkpoint::load(&checkpoint::directory(&run.checkpoints(), step));
        let snapshot = self.step.map(load).transpose()?;
        let (attempt, complete) = (self.attempt, self.complete);
        Ok(Begin { run, attempt, snapshot, notes: Vec::new(), lock: None, complete })
    }
}

/// What run.json says of a training; `on_gpu`: whether a worker is on a real GPU.
pub(super) fn manifest(config: &Config, options: &TrainOptions, on_gpu: bool) -> Manifest {
    let mut manifest = Manifest::default();
    manifest.command.clone_from(&options.command);
    manifest.version = env!("CARGO_PKG_VERSION").to_owned();
    manifest.commit.clone_from(&options.commit);
    if on_gpu {
        manifest.gpu_details = dflash_profiler::gpu_details();
        manifest.gpus = manifest.gpu_details.iter().map(|gpu| gpu.name.clone()).collect();
    }
    manifest.config = serde_json::to_value(config).unwrap_or_default();
    manifest
}
