//! Reading a model's files: safetensors, one or several, with every shape checked against the configuration.

use safetensors::{Dtype, SafeTensors};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tch::{Device, Kind, Tensor};

/// What can be wrong with a model's directory.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// A file cannot be read.
    #[error("cannot read {path}: {source}; {hint}", path = path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
        /// What should be there.
        hint: &'static str,
    },
    /// A JSON file that does not parse, or lacks a field.
    #[error("{path}: {message}", path = path.display())]
    Config {
        /// The file.
        path: PathBuf,
        /// What is wrong and what would be right.
        message: String,
    },
    /// A model that this program cannot run.
    #[error("{path}: {what} is not supported; supported: {supported}", path = path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What it asks for.
        what: String,
        /// What there is.
        supported: &'static str,
    },
    /// A safetensors file that is damaged or half written.
    #[error("{path} is no complete safetensors file ({message}); fetch or convert it again", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the parser says.
        message: String,
    },
    /// A tensor that no file holds.
    #[error("{dir}: tensor `{name}` is missing; the weights are incomplete or belong to another architecture", dir = dir.display())]
    Missing {
        /// The model's directory.
        dir: PathBuf,
        /// The tensor.
        name: String,
    },
    /// A tensor with another shape than the configuration asks for.
    #[error("{dir}: tensor `{name}` has shape {found:?}, config.json asks for {expected:?}", dir = dir.display())]
    Shape {
        /// The model's directory.
        dir: PathBuf,
        /// The tensor.
        name: String,
        /// Its shape in the file.
        found: Vec<i64>,
        /// The shape that the configuration gives.
        expected: Vec<i64>,
    },
    /// A weight that is no number: every output would be none, too.
    #[error("{dir}: tensor `{name}` holds NaN or infinity; the file is damaged, or was saved from a training that had failed", dir = dir.display())]
    NotFinite {
        /// The model's directory.
        dir: PathBuf,
        /// The tensor.
        name: String,
    },
}

/// A model's tensors by name, in the dtype of the file, on the CPU.
pub struct Weights {
    dir: PathBuf,
    tensors: HashMap<String, Tensor>,
}

impl Weights {
    /// Reads `model.safetensors`, or the shards that `model.safetensors.index.json` names.
    ///
    /// # Errors
    /// A missing, damaged or half-written file, by its name.
    pub fn load(dir: &Path) -> Result<Self, ModelError> {
        let mut tensors = HashMap::new();
        for file in weight_files(dir)? {
            read_file(&file, &mut tensors)?;
        }
        Ok(Self { dir: dir.into(), tensors })
    }

    /// Takes a tensor out, checked, as `kind` on `device`.
    ///
    /// # Errors
    /// The tensor is missing, its shape is not `shape`, or it holds NaN or infinity.
    pub fn take(&mut self, name: &str, shape: &[i64], kind: Kind, device: Device) -> Result<Tensor, ModelError> {
        let tensor = self
            .tensors
            .remove(name)
            .ok_or_else(|| ModelError::Missing { dir: self.dir.clone(), name: name.to_owned() })?;
        let found = tensor.size();
        if found != shape {
            let (dir, name, expected) = (self.dir.clone(), name.to_owned(), shape.to_vec());
            return Err(ModelError::Shape { dir, name, found, expected });
        }
        let tensor = tensor.to_device(device).to_kind(kind);
        if tensor.isfinite().all().int64_value(&[]) == 0 {
            return Err(ModelError::NotFinite { dir: self.dir.clone(), name: name.to_owned() });
        }
        Ok(tensor)
    }

    /// Names of the tensors that nobody took, sorted.
    #[must_use]
    pub fn left(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.tensors.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
}

/// The files that hold a model's weights.
///
/// # Errors
/// The index of the shards is unreadable.
pub fn weight_files(dir: &Path) -> Result<Vec<PathBuf>, ModelError> {
    let single = dir.join("model.safetensors");
    let index = dir.join("model.safetensors.index.json");
    if single.exists() || !index.exists() {
        return Ok(vec![single]);
    }
    let text = read_text(&index, "the index of the shards")?;
    let json: serde_json::Value =
        serde_json::from_str(&text).map_err(|e| ModelError::Config { path: index.clone(), message: e.to_string() })?;
    let map = json["weight_map"].as_object().ok_or_else(|| ModelError::Config {
        path: index.clone(),
        message: "`weight_map` is missing: it maps each tensor to its shard".to_owned(),
    })?;
    let mut names: Vec<_> = map.values().filter_map(serde_json::Value::as_str).collect();
    names.sort_unstable();
    names.dedup();
    Ok(names.into_iter().map(|name| dir.join(name)).collect())
}

/// Reads a text file of a model's directory.
///
/// # Errors
/// It cannot be read; `hint` says what should be there.
pub fn read_text(path: &Path, hint: &'static str) -> Result<String, ModelError> {
    std::fs::read_to_string(path).map_err(|source| ModelError::Read { path: path.into(), source, hint })
}

fn read_file(path: &Path, tensors: &mut HashMap<String, Tensor>) -> Result<(), ModelError> {
    let hint = "a model's directory holds model.safetensors, or shards with model.safetensors.index.json";
    let bytes = std::fs::read(path).map_err(|source| ModelError::Read { path: path.into(), source, hint })?;
    let damaged = |message: String| ModelError::Damaged { path: path.into(), message };
    let file = SafeTensors::deserialize(&bytes).map_err(|e| damaged(e.to_string()))?;
    for (name, view) in file.tensors() {
        let kind = kind_of(view.dtype()).ok_or_else(|| ModelError::Unsupported {
            path: path.into(),
            what: format!("dtype {:?} of tensor `{name}`", view.dtype()),
            supported: "F32, F16, BF16, I64, I32, U8, BOOL",
        })?;
        let shape: Vec<i64> = view.shape().iter().map(|&n| n as i64).collect();
        let tensor = Tensor::f_from_data_size(view.data(), &shape, kind).map_err(|e| damaged(e.to_string()))?;
        tensors.insert(name, tensor);
    }
    Ok(())
}

fn kind_of(dtype: Dtype) -> Option<Kind> {
    Some(match dtype {
        Dtype::F32 => Kind::Float,
        Dtype::F16 => Kind::Half,
        Dtype::BF16 => Kind::BFloat16,
        Dtype::I64 => Kind::Int64,
        Dtype::I32 => Kind::Int,
        Dtype::U8 => Kind::Uint8,
        Dtype::BOOL => Kind::Bool,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_that_is_no_number_is_refused_by_name() {
        let good = Tensor::from_slice(&[1.0f32, 2.0]);
        let tensors = HashMap::from([
            ("good".to_owned(), good.shallow_clone()),
            ("nan".to_owned(), &good * f64::NAN),
            // Finite in the file, but too large for the arithmetic asked for.
            ("large".to_owned(), &good * 1e6),
        ]);
        let mut weights = Weights { dir: "model".into(), tensors };
        assert!(weights.take("good", &[2], Kind::Half, Device::Cpu).is_ok());
        for (name, kind) in [("nan", Kind::Float), ("large", Kind::Half)] {
            let message = weights.take(name, &[2], kind, Device::Cpu).unwrap_err().to_string();
            assert!(message.starts_with(&format!("model: tensor `{name}` holds NaN or infinity")), "{message}");
        }
    }
}
