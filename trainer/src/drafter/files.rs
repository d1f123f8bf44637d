//! A drafter's directory in z-lab's layout: config.json and model.safetensors in bfloat16.

use super::{DFlashDrafter, DrafterConfig};
use crate::model::{ModelError, Weights};
use crate::target::TargetConfig;
use safetensors::tensor::TensorView;
use std::collections::HashMap;
use std::io;
use std::path::Path;
use tch::{Device, Kind, Tensor};

/// Loads a drafter's directory, ours or a published one.
///
/// # Errors
/// See [`ModelError`]; a missing tensor is an error, never filled at random.
pub fn load(dir: &Path, kind: Kind, device: Device) -> Result<DFlashDrafter, ModelError> {
    let config = DrafterConfig::load(dir)?;
    let mut weights = Weights::load(dir)?;
    let drafter = DFlashDrafter::build(&config, kind, device, |name, shape| weights.take(name, shape, kind, device))?;
    match weights.left().first() {
        None => Ok(drafter),
        Some(name) => Err(ModelError::Unsupported {
            path: dir.join("model.safetensors"),
            what: format!("a further tensor `{name}`"),
            supported: "the tensors of z-lab's layout",
        }),
    }
}

/// Writes a drafter's files into a directory, which is made if it is not there.
///
/// # Errors
/// The disk refuses.
pub fn write_into(drafter: &DFlashDrafter, target: &TargetConfig, dir: &Path) -> io::Result<()> {
    std::fs::create_dir_all(dir)?;
    let config = serde_json::to_string_pretty(&drafter.config.to_json(target))?;
    std::fs::write(dir.join("config.json"), config + "\n")?;
    let path = dir.join("model.safetensors");
    std::fs::write(&path, safetensors(drafter)?)?;
    std::fs::File::open(&path)?.sync_all()
}

fn safetensors(drafter: &DFlashDrafter) -> io::Result<Vec<u8>> {
    let mut data = Vec::new();
    for (name, tensor) in drafter.parameters() {
        data.push((name.as_str(), tensor.size(), bf16_bytes(tensor)));
    }
    let views: Result<Vec<_>, _> = data
        .iter()
        .map(|(name, shape, bytes)| {
            let shape = shape.iter().map(|&n| n as usize).collect();
            TensorView::new(safetensors::Dtype::BF16, shape, bytes).map(|view| (*name, view))
        })
        .collect();
    let metadata = HashMap::from([("format".to_owned(), "pt".to_owned())]);
    views.and_then(|views| safetensors::serialize(views, Some(metadata))).map_err(io::Error::other)
}

/// Little-endian bytes of a tensor, rounded to bfloat16.
fn bf16_bytes(tensor: &Tensor) -> Vec<u8> {
    let rounded = tensor.detach().to_kind(Kind::BFloat16).to_device(Device::Cpu).contiguous().view([-1]);
    // tch copies no bfloat16 out; the same bits as integers it does.
    let bits = Vec::<i16>::try_from(rounded.view_dtype(Kind::Int16)).unwrap_or_default();
    bits.into_iter().flat_map(i16::to_le_bytes).collect()
}
