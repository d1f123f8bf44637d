//! Checkpoints: everything that a training needs to go on as if it had never stopped.
//!
//! | in `checkpoints/step-NNNNNN/` | what |
//! |---|---|
//! | `state.json` | step, the loader's position, random seeds, what the run was made from, the checksum of the file below |
//! | `state.safetensors` | float32 masters of the weights, and the optimizer's moments |
//! | `export/` | the drafter in z-lab's layout |
//! | `eval.json` | what an evaluation of it has found, if there was one |
//!
//! A checkpoint gets its name once all of it is on the disk: whatever has the name is whole.

mod error;
mod export;
mod files;
mod identity;
mod keep;
mod lock;
mod state;
mod tensors;

pub use error::CheckpointError;
pub use export::{compare, copy, export, fill};
pub use files::{recover, write_directory};
pub use identity::Identity;
pub use keep::{Measured, Stored, best, list, newest, prune, set_aside, write_figures};
pub use lock::RunLock;
pub use state::{Loader, SCHEMA, Snapshot, State, load, read_state, write};
pub use tensors::{read_tensors, seems_whole, write_tensors};

use std::path::{Path, PathBuf};

/// The file of figures within a checkpoint.
pub const STATE_JSON: &str = "state.json";
/// The file of tensors within a checkpoint.
pub const STATE_TENSORS: &str = "state.safetensors";
/// The drafter within a checkpoint.
pub const EXPORT: &str = "export";
/// An evaluation's figures within a checkpoint.
pub const EVAL_JSON: &str = "eval.json";

/// Where a run's checkpoint of a step lies.
#[must_use]
pub fn directory(checkpoints: &Path, step: usize) -> PathBuf {
    checkpoints.join(format!("step-{step:06}"))
}
