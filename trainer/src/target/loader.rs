//! The target's weights by their names.

use crate::model::{Linear, ModelError, RmsNorm, Weights};
use std::path::Path;
use tch::{Device, Kind, Tensor};

const HEAD: &str = "lm_head.weight";

/// Takes weights out of files, or makes random ones.
pub(super) struct Loader {
    /// `None`: random ones.
    pub(super) weights: Option<Weights>,
    pub(super) kind: Kind,
    pub(super) device: Device,
    pub(super) eps: f64,
}

impl Loader {
    pub(super) fn tensor(&mut self, name: &str, shape: &[i64]) -> Result<Tensor, ModelError> {
        match &mut self.weights {
            Some(weights) => weights.take(name, shape, self.kind, self.device),
            None => Ok((Tensor::randn(shape, (Kind::Float, self.device)) * 0.02).to_kind(self.kind)),
        }
    }

    /// Tensors that this architecture does not use would be left out silently: it is another one.
    pub(super) fn refuse_rest(&self, dir: &Path) -> Result<(), ModelError> {
        let harmless = |name: &str| name.ends_with("rotary_emb.inv_freq");
        let left = self.weights.as_ref().map(Weights::left).unwrap_or_default();
        match left.into_iter().find(|name| !harmless(name)) {
            None => Ok(()),
            Some(name) => Err(ModelError::Unsupported {
                path: dir.to_owned(),
                what: format!("tensor `{name}`, which config.json does not account for,"),
                supported: "the tensors of Llama, Qwen2 and Qwen3",
            }),
        }
    }

    /// The head of its own. A tied model has none; a file that stores one anyway must store the same: what it would be left out
    /// for in silence is another model.
    pub(super) fn head(&mut self, embedding: &Tensor, tied: bool, dir: &Path) -> Result<Tensor, ModelError> {
        let stored = self.weights.as_ref().is_some_and(|weights| weights.left().contains(&HEAD));
        if tied && !stored {
            return Ok(embedding.shallow_clone());
        }
        let head = self.tensor(HEAD, &embedding.size())?;
        if !tied {
            return Ok(head);
        }
        if head.equal(embedding) {
            return Ok(embedding.shallow_clone());
        }
        let message = format!(
            "tie_word_embeddings is true, but `{HEAD}` is not the embedding: say false if it is the head, else remove it"
        );
        Err(ModelError::Config { path: dir.join("config.json"), message })
    }

    pub(super) fn linear(&mut self, name: &str, shape: [i64; 2], bias: bool) -> Result<Linear, ModelError> {
        let weight = self.tensor(&format!("{name}.weight"), &shape)?;
        let bias = if bias { Some(self.tensor(&format!("{name}.bias"), &shape[..1])?) } else { None };
        Ok(Linear { weight, bias })
    }

    pub(super) fn norm(&mut self, name: &str, width: i64) -> Result<RmsNorm, ModelError> {
        Ok(RmsNorm { weight: self.tensor(&format!("{name}.weight"), &[width])?, eps: self.eps })
    }
}
