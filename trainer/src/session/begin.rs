//! The run directory that a training works in: a new one, or one that it goes on in.

use super::resume::{self, Resumed};
use super::train::TrainOptions;
use crate::checkpoint::{Identity, RunLock, Snapshot};
use crate::config::Config;
use crate::error::TrainError;
use dflash_profiler::timeline::{Manifest, RunDir};
use std::path::PathBuf;

/// Where a training works.
pub(super) struct Begin {
    pub(super) run: RunDir,
    pub(super) attempt: u32,
    pub(super) snapshot: Option<Snapshot>,
    pub(super) notes: Vec<String>,
    pub(super) lock: RunLock,
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
            return Ok(Self { run, attempt: 1, snapshot: None, notes: Vec::new(), lock, complete: None });
        };
        let Resumed { run, manifest: before, snapshot, notes, lock, complete } =
            resume::open(run, config, identity, &options.given)?;
        if complete.is_some() {
            return Ok(Self { run, attempt: before.attempt, snapshot: None, notes, lock, complete });
        }
        (manifest.name, manifest.attempt, manifest.results) = (before.name, before.attempt + 1, before.results);
        let attempt = manifest.attempt;
        run.begin_attempt(manifest)?;
        Ok(Self { run, attempt, snapshot: Some(snapshot), notes, lock, complete })
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
