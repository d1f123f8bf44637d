//! The target's forward pass.

use super::layer::Layer;
use super::loader::Loader;
use super::{KvCache, TargetConfig};
use crate::drafter::Packed;
use crate::instrument::TorchStream;
use crate::model::attention::{by_document, causal, masked};
use crate::model::{ModelError, RmsNorm, Rope, Weights, linear};
use dflash_profiler::span;
use std::path::Path;
use tch::{Device, Kind, Tensor};

/// A frozen target.
#[derive(Debug)]
pub struct Target {
    /// Its shape.
    pub config: TargetConfig,
    /// [V, D]
    pub embedding: Tensor,
    /// [V, D]; the embedding itself where the model ties them.
    pub head: Tensor,
    /// The stream that its spans are timed on; `None`: on the host alone.
    pub stream: Option<TorchStream>,
    layers: Vec<Layer>,
    norm: RmsNorm,
    rope: Rope,
    device: Device,
    kind: Kind,
}

/// What a forward pass leaves.
#[derive(Debug)]
pub struct Features {
    /// Residual stream after the last layer that ran, before the final norm: [b, S, D].
    pub last: Tensor,
    /// Outputs of the tapped layers, in the order of the taps: [b, S, D] each.
    pub taps: Vec<Tensor>,
}

impl Target {
    /// Loads a Hugging Face directory onto a device, as `kind`.
    ///
    /// # Errors
    /// See [`ModelError`].
    pub fn load(dir: &Path, kind: Kind, device: Device) -> Result<Self, ModelError> {
        let config = TargetConfig::load(dir)?;
        let weights = Some(Weights::load(dir)?);
        Self::build(config, weights, dir, kind, device)
    }

    /// A target of random weights: for benches and tests.
    ///
    /// # Errors
    /// See [`ModelError`].
    pub fn random(config: TargetConfig, kind: Kind, device: Device) -> Result<Self, ModelError> {
        Self::build(config, None, Path::new("random"), kind, device)
    }

    fn build(
        config: TargetConfig,
        weights: Option<Weights>,
        dir: &Path,
        kind: Kind,
        device: Device,
    ) -> Result<Self, ModelError> {
        let mut loader = Loader { weights, kind, device, eps: config.rms_norm_eps };
        let (v, d) = (config.vocab_size, config.hidden_size);
        let embedding = loader.tensor("model.embed_tokens.weight", &[v, d])?;
        let head = loader.head(&embedding, config.tied, dir)?;
        let layers = (0..config.layers).map(|i| Layer::load(&mut loader, &config, i)).collect::<Result<_, _>>()?;
        let norm = loader.norm("model.norm", d)?;
        loader.refuse_rest(dir)?;
        let positions = config.max_positions;
        let rope = Rope::new(config.head_dim, config.rope_theta, &config.rope_scaling, positions, kind, device);
        Ok(Self { config, embedding, head, stream: None, layers, norm, rope, device, kind })
    }

    /// The same target for another thread: its weights, which nobody changes, are not copied.
    #[must_use]
    pub fn shared(&self) -> Self {
        Self {
            config: self.config.clone(),
            embedding: self.embedding.shallow_clone(),
            head: self.head.shallow_clone(),
            stream: None,
            layers: self.layers.iter().map(Layer::shared).collect(),
            norm: self.norm.shared(),
            rope: self.rope.shared(),
            ..*self
        }
    }

    /// Where it is.
    #[must_use]
    pub fn device(&self) -> Device {
        self.device
    }

    /// Its arithmetic.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Longest sequence that its position tables hold, tokens.
    #[must_use]
    pub fn max_length(&self) -> i64 {
        self.rope.positions()
    }

    /// An empty cache for `batch` sequences with room for `rows` tokens.
    #[must_use]
    pub fn cache(&self, batch: i64, rows: i64) -> KvCache {
        let shape = [batch, self.config.kv_heads, self.config.head_dim];
        KvCache::new(self.config.layers, shape, rows, self.kind, self.device)
    }

    /// Reads whole sequences; ids [b, S], padded at the end at most. Stops after the last tapped layer unless `whole`.
    #[must_use]
    pub fn features(&self, ids: &Tensor, taps: &[usize], whole: bool) -> Features {
        let positions = Tensor::arange(ids.size()[1], (Kind::Int64, self.device));
        let last = if whole { self.layers.len() } else { 1 + taps.iter().copied().max().unwrap_or(0) };
        self.run(ids, taps, last, &positions, |_, q, k, v| causal(q, k, v))
    }

    /// Reads rows that hold several documents each, at the positions `packed` gives: attention is causal inside a document
    /// and never crosses one. Otherwise as [`Target::features`].
    #[must_use]
    pub fn packed_features(&self, ids: &Tensor, packed: &Packed, taps: &[usize], whole: bool) -> Features {
        let last = if whole { self.layers.len() } else { 1 + taps.iter().copied().max().unwrap_or(0) };
        self.run(ids, taps, last, &packed.positions, |_, q, k, v| by_document(q, k, v, &packed.spans))
    }

    /// What a drafter is fed with: the concatenated taps, [b, S, n·D]; with `teacher`, behind them what the head reads,
    /// [b, S, (n+1)·D].
    pub fn drafter_features(&self, ids: &Tensor, packed: Option<&Packed>, taps: &[usize], teacher: bool) -> Tensor {
        Tensor::cat(&self.drafter_taps(ids, packed, taps, teacher), -1)
    }

    /// The parts of [`drafter_features`](Self::drafter_features), each [b, S, D].
    pub fn drafter_taps(&self, ids: &Tensor, packed: Option<&Packed>, taps: &[usize], teacher: bool) -> Vec<Tensor> {
        let features = match packed {
            Some(packed) => self.packed_features(ids, packed, taps, teacher),
            None => self.features(ids, taps, teacher),
        };
        let mut parts = features.taps;
        if teacher {
            parts.push(self.norm.forward(&features.last));
        }
        parts
    }

    /// Reads the beginning of sequences into an empty cache with room for it; ids [b, S], padded at the end at most. The padding's rows are
    /// in the cache too: a mask must hide them later.
    #[must_use]
    pub fn prefill(&self, ids: &Tensor, cache: &mut KvCache, taps: &[usize]) -> Features {
        let rows = ids.size()[1];
        let positions = Tensor::arange(rows, (Kind::Int64, self.device));
        let features = self.run(ids, taps, self.layers.len(), &positions, |layer, q, k, v| {
            let _ = cache.extend(layer, k, v);
            causal(q, k, v)
        });
        cache.advance(rows);
        features
    }

    /// Reads the next tokens ids [b, Q] at `positions` `[Q]` or [b, Q] behind the cache, which must have room for them;
    /// `mask` is additive, broadcast to [b, 1, Q, capacity]. The cache counts the new rows as valid afterwards.
    #[must_use]
    pub fn step(
        &self,
        ids: &Tensor,
        positions: &Tensor,
        mask: &Tensor,
        cache: &mut KvCache,
        taps: &[usize],
    ) -> Features {
        let features = self.run(ids, taps, self.layers.len(), positions, |layer, q, k, v| {
            let (k, v) = cache.extend(layer, k, v);
            masked(q, &k, &v, mask)
        });
        cache.advance(ids.size()[1]);
        features
    }

    /// Final norm and head: [.., D] -> [.., V].
    pub fn logits(&self, hidden: &Tensor) -> Tensor {
        linear(&self.norm.forward(hidden), &self.head, None)
    }

    fn run(
        &self,
        ids: &Tensor,
        taps: &[usize],
        last: usize,
        positions: &Tensor,
        attend: impl Fn(usize, &Tensor, &Tensor, &Tensor) -> Tensor,
    ) -> Features {
        let mut x = Tensor::embedding(&self.embedding, ids, -1, false, false);
        let mut outputs = Vec::with_capacity(taps.len());
        for (i, layer) in self.layers[..last].iter().enumerate() {
            let _span = span!("target.layer", &self.stream, index = i);
            x = layer.forward(&x, &self.rope, positions, self.config.head_dim, |q, k, v| attend(i, q, k, v));
            if taps.contains(&i) {
                outputs.push((i, x.shallow_clone()));
            }
        }
        let tap = |id: &usize| outputs.iter().find(|(i, _)| i == id).map(|(_, x)| x.shallow_clone());
        Features { taps: taps.iter().filter_map(tap).collect(), last: x }
    }
}
