//! What can be wrong with a checkpoint.

use crate::model::ModelError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a checkpoint cannot be used or written.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// A file cannot be read or written.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// Its contents are not what was written.
    #[error("{path} is damaged ({problem}); resume from another checkpoint", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// It was written by a later version.
    #[error("{path} has layout {found}, this version reads {known}; use a newer dflash", path = path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its layout.
        found: u32,
        /// What this version knows.
        known: u32,
    },
    /// It belongs to another configuration or target.
    #[error("{path} is a checkpoint of something else: {differences}; resume with the configuration that it was made with, or begin a new run", path = path.display())]
    Other {
        /// The checkpoint.
        path: PathBuf,
        /// Every key that differs, with both values.
        differences: String,
    },
    /// There is none.
    #[error("{path}: no checkpoint to resume from{damaged}; begin a new run", path = path.display())]
    None {
        /// The run's checkpoints.
        path: PathBuf,
        /// What is wrong with those that are there, if there are any.
        damaged: String,
    },
    /// A drafter's directory that is not what was written into it.
    #[error("{path}: {problem}; nothing was exported", path = path.display())]
    Export {
        /// The directory.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// What should be exported is no drafter.
    #[error(transparent)]
    Source(#[from] ModelError),
    /// Something that must not be overwritten.
    #[error("{path} is not an empty directory; name another one", path = path.display())]
    InTheWay {
        /// What is in the way.
        path: PathBuf,
    },
    /// Another process trains in this run.
    #[error("{run}: another process trains in it; wait for its end, or stop it", run = run.display())]
    Busy {
        /// The run.
        run: PathBuf,
    },
    /// There is nothing left to do.
    #[error("{run} has made all its {steps} steps; give more with --steps", run = run.display())]
    Finished {
        /// The run.
        run: PathBuf,
        /// Steps made.
        steps: usize,
    },
    /// A simulated training.
    #[error("{run}: a simulated training has no checkpoints to go on from; leave --resume out", run = run.display())]
    Simulated {
        /// The run.
        run: PathBuf,
    },
    /// The weights are no numbers.
    #[error("`{tensor}` holds values that are no numbers: such a checkpoint is worth nothing, and is not written")]
    NotFinite {
        /// The first tensor that does.
        tensor: String,
    },
}

impl CheckpointError {
    /// An error of the system, to be given its cause.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }

    /// The file of a checkpoint that cannot be used. `None`: nothing is wrong with a file, or a newer version reads it.
    pub(super) fn unusable(&self) -> Option<&Path> {
        match self {
            Self::Io { path, .. } | Self::Damaged { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Whether it came up while writing: the training may go on without.
    #[must_use]
    pub fn while_writing(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::NotFinite { .. } | Self::Export { .. })
    }
}
