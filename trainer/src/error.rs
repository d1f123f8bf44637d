//! What can go wrong in preparing, training and evaluating.

use crate::checkpoint::CheckpointError;
use crate::config::ConfigError;
use crate::data::DataError;
use crate::features::FeatureError;
use crate::model::ModelError;
use std::io;
use std::path::PathBuf;

/// An error of the trainer. [`TrainError::while_running`] tells bad input from what failed on the way.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A model's directory.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Prompts, templates, shards.
    #[error(transparent)]
    Data(#[from] DataError),
    /// The run directory.
    #[error(transparent)]
    Timeline(#[from] dflash_profiler::timeline::Error),
    /// The recorder.
    #[error(transparent)]
    Profiler(#[from] dflash_profiler::Error),
    /// There are no shards yet.
    #[error("{shards}: no shards there yet; run `dflash prepare {config}` first", shards = shards.display(), config = config)]
    NotPrepared {
        /// Where they should be.
        shards: PathBuf,
        /// The configuration, as given.
        config: String,
    },
    /// A guard found something that would be learnt wrong in silence.
    #[error(transparent)]
    Guard(#[from] crate::guards::Fault),
    /// Nothing to work on.
    #[error("{path}: {problem}", path = path.display())]
    Empty {
        /// The file or directory.
        path: PathBuf,
        /// What is missing, and what to change.
        problem: String,
    },
    /// A device that is not there.
    #[error("device {device}: {why}")]
    Device {
        /// As written.
        device: String,
        /// Why not, and the way out.
        why: String,
    },
    /// A run whose manifest does not hold a configuration.
    #[error("{run}: run.json holds no usable configuration ({problem}); name one with --config", run = run.display())]
    NoConfig {
        /// The run.
        run: PathBuf,
        /// What the parser says.
        problem: String,
    },
    /// A worker failed.
    #[error("{lane} failed: {cause}")]
    Lane {
        /// The lane.
        lane: String,
        /// Why.
        cause: String,
    },
    /// Another process of the training, or how they were started.
    #[error(transparent)]
    Ranks(#[from] crate::ranks::RanksError),
    /// What the ranks cannot sum by.
    #[error(
        "[pipeline] reduce = \"nccl\": {why}; take \"auto\" or \"gloo\", or give each rank a GPU of its own (docs/pipeline.md)"
    )]
    Reduce {
        /// Which rank lacks what.
        why: String,
    },
    /// The attention that was asked for.
    #[error("[train] attention = \"{asked}\": {why}; take {instead}")]
    Attention {
        /// As written.
        asked: &'static str,
        /// What cannot serve.
        why: String,
        /// What can.
        instead: &'static str,
    },
    /// A checkpoint.
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// Hidden states on the disk.
    #[error(transparent)]
    Features(#[from] FeatureError),
    /// The disk refused a checkpoint.
    #[error("cannot write {path}: {source}; free some space or name another `run.dir`", path = path.display())]
    Save {
        /// What could not be written.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl TrainError {
    /// Whether it failed on the way, rather than because of its input.
    #[must_use]
    pub fn while_running(&self) -> bool {
        match self {
            Self::Lane { .. } | Self::Save { .. } => true,
            Self::Checkpoint(error) => error.while_writing(),
            Self::Ranks(error) => error.while_running(),
            Self::Data(DataError::Io { source, .. }) | Self::Features(FeatureError::Io { source, .. }) => {
                is_full(source)
            }
            Self::Timeline(dflash_profiler::timeline::Error::Io { source, .. }) => is_full(source),
            _ => false,
        }
    }
}

/// A disk without room is nobody's bad input.
fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
