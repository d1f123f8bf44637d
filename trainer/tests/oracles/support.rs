//! Reading fixtures and comparing tensors.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tch::{Kind, Tensor};

/// A fixture folder of the repository's tests/data.
pub fn data(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data").join(path)
}

/// Tensors of a safetensors file.
pub struct Tensors(Vec<(String, Tensor)>);

impl Tensors {
    pub fn read(path: PathBuf) -> Self {
        Self(Tensor::read_safetensors(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())))
    }

    pub fn get(&self, name: &str) -> Tensor {
        self.find(name).unwrap_or_else(|| panic!("no tensor {name}"))
    }

    /// A tensor that only some files have.
    pub fn find(&self, name: &str) -> Option<Tensor> {
        self.0.iter().find(|(n, _)| n == name).map(|(_, t)| t.shallow_clone())
    }

    pub fn iter(&self) -> impl Iterator<Item = &(String, Tensor)> {
        self.0.iter()
    }
}

pub fn json(path: PathBuf) -> Value {
    serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap()
}

pub fn ids(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|v| v.as_i64().unwrap()).collect()
}

/// Numbers from -1.7 to 1.7, of a generator of their own: libtorch's is shared by all tests of the process.
pub fn random(shape: &[i64], seed: u64) -> Tensor {
    let mut rng = StdRng::seed_from_u64(seed);
    let numbers: Vec<f32> = (0..shape.iter().product()).map(|_| rng.random_range(-1.7..1.7)).collect();
    Tensor::from_slice(&numbers).view(shape)
}

/// The largest absolute difference.
pub fn worst(got: &Tensor, want: &Tensor) -> f64 {
    assert_eq!(got.size(), want.size());
    (got.to_kind(Kind::Double) - want.to_kind(Kind::Double)).abs().max().double_value(&[])
}

/// |got - want| / |want| over the whole tensor.
pub fn relative(got: &Tensor, want: &Tensor) -> f64 {
    let (got, want) = (got.to_kind(Kind::Double), want.to_kind(Kind::Double));
    ((got - &want).norm() / want.norm()).double_value(&[])
}

#[track_caller]
pub fn within(what: &str, error: f64, tolerance: f64) {
    assert!(error <= tolerance, "{what}: error {error:.2e} is above {tolerance:.0e}");
}
