//! The state of a training, to the disk and back.

use super::{
    CheckpointError, EXPORT, Identity, STATE_JSON, STATE_TENSORS, read_tensors, write_directory, write_tensors,
};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use tch::Tensor;

/// Layout of state.json that this version writes.
pub const SCHEMA: u32 = 1;

/// state.json. Fields that this version does not know are ignored.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct State {
    /// Layout of this file.
    pub schema: u32,
    /// Version of dflash that wrote it.
    pub version: String,
    /// Attempt of the run that wrote it, from 1.
    pub attempt: u32,
    /// Optimizer steps made, skipped ones included.
    pub step: usize,
    /// When, nanoseconds since 1970.
    pub saved_unix_ns: i64,
    /// The loader's position.
    pub loader: Loader,
    /// What the training is made from.
    pub identity: Identity,
    /// CRC-32C of state.safetensors.
    pub checksum: u32,
}

/// Where the loader stands: the next batch is the first that has not been trained on.
///
/// Everything random of a batch (its anchors, its candidates) comes from the seed and its number, so the two are also
/// the state of all random numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Loader {
    /// Seed of the order and of what is drawn for each batch.
    pub seed: u64,
    /// Number of the next batch, from 0.
    pub batch: u64,
    /// Its epoch, from 0.
    pub epoch: u64,
    /// Its place in the epoch, from 0.
    pub index: u64,
    /// Several targets handed their batches on as they were made, so that those that were trained on are not exactly the
    /// first ones: nobody can go on exactly here.
    pub arrival: bool,
}

/// A checkpoint that was read.
#[derive(Debug)]
pub struct Snapshot {
    /// Its figures.
    pub state: State,
    /// Its tensors by name.
    pub tensors: Vec<(String, Tensor)>,
}

/// Writes a checkpoint: `tensors` and figures here, the drafter by `export` into the folder that it is given.
///
/// # Errors
/// The disk refuses, or the weights are no numbers; an earlier checkpoint of that name is still there then.
pub fn write(
    dir: &Path,
    state: &State,
    tensors: &[(String, Tensor)],
    export: impl FnOnce(&Path) -> Result<(), CheckpointError>,
) -> Result<(), CheckpointError> {
    write_directory(dir, |part| {
        let checksum = write_tensors(&part.join(STATE_TENSORS), tensors)?;
        let state = State { schema: SCHEMA, checksum, ..state.clone() };
        export(&part.join(EXPORT))?;
        let path = part.join(STATE_JSON);
        let text = serde_json::to_string_pretty(&state).unwrap_or_default() + "\n";
        fs::write(&path, text).map_err(CheckpointError::io("write", &path))
    })
}

/// Reads a checkpoint's figures.
///
/// # Errors
/// The file is missing, unreadable, or of a later version.
pub fn read_state(dir: &Path) -> Result<State, CheckpointError> {
    let path = dir.join(STATE_JSON);
    let text = fs::read_to_string(&path).map_err(CheckpointError::io("read", &path))?;
    let state: State = serde_json::from_str(&text)
        .map_err(|e| CheckpointError::Damaged { path: path.clone(), problem: e.to_string() })?;
    if state.schema > SCHEMA {
        return Err(CheckpointError::TooNew { path, found: state.schema, known: SCHEMA });
    }
    Ok(state)
}

/// Reads a whole checkpoint, and checks its sum.
///
/// # Errors
/// It is damaged, or of a later version.
pub fn load(dir: &Path) -> Result<Snapshot, CheckpointError> {
    let state = read_state(dir)?;
    let tensors = read_tensors(&dir.join(STATE_TENSORS), state.checksum)?;
    Ok(Snapshot { state, tensors })
}
