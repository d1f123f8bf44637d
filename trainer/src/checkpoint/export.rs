//! A drafter's directory for serving engines, reloaded and compared before it gets its name.

use super::{CheckpointError, write_directory};
use crate::drafter::{self, DFlashDrafter};
use crate::target::TargetConfig;
use std::fs;
use std::path::Path;
use tch::{Device, Kind, Tensor};

/// Writes a drafter in z-lab's layout; what stands at `dir` is replaced.
///
/// # Errors
/// The disk refuses, or what comes back is not what was written; then `dir` is as it was.
pub fn export(drafter: &DFlashDrafter, target: &TargetConfig, dir: &Path) -> Result<(), CheckpointError> {
    write_directory(dir, |part| fill(drafter, target, part))
}

/// Writes a drafter's files into a directory that nobody looks at yet, and compares them.
///
/// # Errors
/// As [`export`].
pub fn fill(drafter: &DFlashDrafter, target: &TargetConfig, dir: &Path) -> Result<(), CheckpointError> {
    drafter::write_into(drafter, target, dir).map_err(CheckpointError::io("write", dir))?;
    compare(dir, drafter)
}

/// Whether a directory holds a drafter, tensor by tensor, rounded to bfloat16.
///
/// # Errors
/// It does not; the error names the first difference.
pub fn compare(dir: &Path, drafter: &DFlashDrafter) -> Result<(), CheckpointError> {
    let differs = |problem: String| CheckpointError::Export { path: dir.into(), problem };
    let back = drafter::load(dir, Kind::BFloat16, Device::Cpu).map_err(|e| differs(e.to_string()))?;
    if back.config != drafter.config {
        return Err(differs("config.json comes back with another shape".to_owned()));
    }
    for ((name, found), (_, tensor)) in back.parameters().iter().zip(drafter.parameters()) {
        let rounded = tensor.detach().to_device(Device::Cpu).to_kind(Kind::BFloat16);
        if bits(found).size() != bits(&rounded).size() || !bits(found).equal(&bits(&rounded)) {
            return Err(differs(format!("`{name}` comes back with other values")));
        }
    }
    Ok(())
}

/// Their bits: not even two zeros are the same.
fn bits(tensor: &Tensor) -> Tensor {
    tensor.contiguous().view_dtype(Kind::Int16)
}

/// Copies a drafter's directory, ours or a published one, as it is; `dir` must be empty or not there.
///
/// # Errors
/// `dir` holds something; the source is no drafter; the disk refuses.
pub fn copy(from: &Path, dir: &Path) -> Result<(), CheckpointError> {
    if dir.exists() && !fs::read_dir(dir).is_ok_and(|mut entries| entries.next().is_none()) {
        return Err(CheckpointError::InTheWay { path: dir.into() });
    }
    let drafter = drafter::load(from, Kind::BFloat16, Device::Cpu)?;
    write_directory(dir, |part| {
        for name in ["config.json", "model.safetensors"] {
            let (from, to) = (from.join(name), part.join(name));
            fs::copy(&from, &to).map_err(CheckpointError::io("write", to))?;
        }
        compare(part, &drafter)
    })
}
