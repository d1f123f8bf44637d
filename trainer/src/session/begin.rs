//! The run directory that a training works in: a new one, or one that it goes on in.

use super::resume::{self, Resumed};
use super::train::TrainOptions;
use crate::checkpoint::{Identity, RunLock, Snapshot};
use crate::config::Config;
use crate::error::TrainError;
use dflash_profiler::timeline::{Manifest, RunDir};

/// Where a training works.
pub(super) struct Begin {
    pub(super) run: RunDir,
    pub(super) attempt: u32,
    pub(super) snapshot: Option<Snapshot>,
    pub(super) notes: Vec<String>,
    pub(super) lock: RunLock,
}

impl Begin {
    /// A new run, or the one to go on in.
    pub(super) fn new(config: &Config, options: &TrainOptions, identity: &Identity) -> Result<Self, TrainError> {
        let mut manifest = manifest(config, options);
        let Some(run) = &options.resume else {
            let run = RunDir::create(&config.run.dir, &config.run.name, manifest)?;
            let lock = RunLock::take(run.path())?;
            return Ok(Self { run, attempt: 1, snapshot: None, notes: Vec::new(), lock });
        };
        let Resumed { run, manifest: before, snapshot, notes, lock } =
            resume::open(run, config, identity, &options.given)?;
        (manifest.name, manifest.attempt, manifest.results) = (before.name, before.attempt + 1, before.results);
        let attempt = manifest.attempt;
        run.begin_attempt(manifest)?;
        Ok(Self { run, attempt, snapshot: Some(snapshot), notes, lock })
    }
}

fn manifest(config: &Config, options: &TrainOptions) -> Manifest {
    let mut manifest = Manifest::default();
    manifest.command.clone_from(&options.command);
    manifest.version = env!("CARGO_PKG_VERSION").to_owned();
    manifest.config = serde_json::to_value(config).unwrap_or_default();
    manifest
}
