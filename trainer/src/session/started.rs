//! What ranks compare once all is loaded.

use super::load::Loaded;
use crate::data::hex;
use crate::ranks::Facts;
use sha2::{Digest, Sha256};
use tch::{Device, Kind, Tensor};

/// The texts, and the weights that they begin with.
pub(super) fn started_with(loaded: &Loaded) -> Facts {
    let mut facts = loaded.identity.prepared();
    facts.insert("the hash of the drafter's first weights".to_owned(), hash(loaded.drafter.parameters()).into());
    facts
}

/// SHA-256 of all weights, bit for bit: a sum would depend on how many threads add.
fn hash(weights: &[(String, Tensor)]) -> String {
    let mut hasher = Sha256::new();
    for (name, weight) in weights {
        hasher.update(format!("{name} {:?} {:?}\n", weight.kind(), weight.size()));
        let bytes = weight.detach().to_device(Device::Cpu).contiguous().view([-1]).view_dtype(Kind::Uint8);
        // Bytes on the CPU in one row are always read.
        hasher.update(Vec::<u8>::try_from(bytes).unwrap_or_default());
    }
    hex(&hasher.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_makes_another_hash_and_threads_do_not() {
        let weights = |values: &[f32]| vec![("w".to_owned(), Tensor::from_slice(values))];
        let values: Vec<f32> = (0..10_000).map(|i| 1.0 / (i as f32 + 1.0)).collect();
        let mut other = values.clone();
        other[7_000] = f32::from_bits(other[7_000].to_bits() ^ 1);
        assert_eq!(hash(&weights(&values)), hash(&weights(&values)));
        assert_ne!(hash(&weights(&values)), hash(&weights(&other)));
        let of_kind = |kind| vec![("w".to_owned(), Tensor::zeros([2, 3], (kind, Device::Cpu)))];
        assert_ne!(hash(&of_kind(Kind::BFloat16)), hash(&of_kind(Kind::Half)));
        let turned = vec![("w".to_owned(), Tensor::from_slice(&values).view([100, 100]).tr())];
        assert_ne!(hash(&turned), hash(&weights(&values)));
    }
}
