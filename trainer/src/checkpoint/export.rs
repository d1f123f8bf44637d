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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_that_comes_back_otherwise_is_refused() {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/decode/qwen3_b8");
        let drafter = drafter::load(&data.join("drafter"), Kind::BFloat16, Device::Cpu).unwrap();
        let target = TargetConfig::load(&data.join("target")).unwrap();
        let place = tempfile::tempdir().unwrap();
        let dir = place.path().join("drafter");
        export(&drafter, &target, &dir).unwrap();
        let said = |file: &str, bytes: &[u8]| {
            let whole = fs::read(dir.join(file)).unwrap();
            fs::write(dir.join(file), bytes).unwrap();
            let error = compare(&dir, &drafter).unwrap_err().to_string();
            fs::write(dir.join(file), whole).unwrap();
            error
        };
        let mut weights = fs::read(dir.join("model.safetensors")).unwrap();
        let end = weights.len();
        assert!(said("model.safetensors", &weights[..end - 2]).contains("no complete safetensors file"));
        // One bit of the last number.
        weights[end - 2] ^= 1;
        assert!(said("model.safetensors", &weights).contains("comes back with other values"));
        let config = fs::read_to_string(dir.join("config.json")).unwrap();
        let other = config.replace("\"mask_token_id\": 25", "\"mask_token_id\": 26");
        assert!(said("config.json", other.as_bytes()).contains("comes back with another shape"));
        compare(&dir, &drafter).unwrap();
    }
}
