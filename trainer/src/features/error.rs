//! What can be wrong with kept hidden states.

use std::io;
use std::path::{Path, PathBuf};

/// An error of the hidden states on the disk.
#[derive(Debug, thiserror::Error)]
pub enum FeatureError {
    /// The file system refuses.
    #[error("cannot {action} {path}: {source}; free some space, name another [pipeline] feature_dir, or write feature_cache = \"off\"", path = path.display())]
    Io {
        /// What was tried: "read", "write", …
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A file is not what was written.
    #[error("{path} is damaged ({problem}); remove {dir}, and the next training makes its hidden states again", path = path.display(), dir = dir.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The folder that holds it.
        dir: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// They would take more room than they may.
    #[error("the hidden states of these texts take {needed:.1} GB, and {there:.1} GB of others are in {root}{others}; [pipeline] feature_bytes allows {most:.1} GB: raise it, remove some of them, or write feature_cache = \"off\"", root = root.display())]
    TooLarge {
        /// GB that they take.
        needed: f64,
        /// GB that are there.
        there: f64,
        /// Where.
        root: PathBuf,
        /// Their names, if there are any.
        others: String,
        /// GB that are allowed.
        most: f64,
    },
    /// Another training fills them.
    #[error("{dir}: another training is filling it; wait for its end, or name another [pipeline] feature_dir", dir = dir.display())]
    Busy {
        /// The folder.
        dir: PathBuf,
    },
    /// They were written by a later version.
    #[error("{path} has layout {found}, this version reads {known}; use a newer dflash, or name another [pipeline] feature_dir", path = path.display())]
    TooNew {
        /// The manifest.
        path: PathBuf,
        /// Its layout.
        found: u32,
        /// What this version knows.
        known: u32,
    },
}

impl FeatureError {
    /// An error of the system, to be given its cause.
    pub(super) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { action, path, source }
    }

    /// A file of `dir` that is not what was written.
    pub(super) fn damaged(dir: &Path, file: &str, problem: impl Into<String>) -> Self {
        Self::Damaged { path: dir.join(file), dir: dir.to_owned(), problem: problem.into() }
    }
}
