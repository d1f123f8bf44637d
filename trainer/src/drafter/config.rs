//! A drafter's shape.

use crate::config::{LayerType, WindowRule};
use crate::model::{ModelError, RopeScaling};
use crate::target::TargetConfig;
use std::path::Path;

/// A drafter's shape. Hidden size, heads and rotary positions are the target's.
#[derive(Clone, Debug, PartialEq)]
pub struct DrafterConfig {
    /// D
    pub hidden_size: i64,
    /// Width of the feed-forward layers.
    pub intermediate_size: i64,
    /// Number of layers.
    pub layers: i64,
    /// H
    pub heads: i64,
    /// G
    pub kv_heads: i64,
    /// d
    pub head_dim: i64,
    /// V
    pub vocab_size: i64,
    /// Added to the mean square in norms.
    pub rms_norm_eps: f64,
    /// Base of the rotary frequencies.
    pub rope_theta: f64,
    /// Biases on q, k, v and o.
    pub attention_bias: bool,
    /// Longest sequence, tokens.
    pub max_positions: i64,
    /// B: tokens of a block, the anchor included.
    pub block_size: i64,
    /// The token that stands for "to be predicted".
    pub mask_token_id: i64,
    /// Tapped target layers; id i = the output of layer i.
    pub target_layer_ids: Vec<usize>,
    /// Layers of the target.
    pub target_layers: i64,
    /// Standard deviation of the initial weights.
    pub initializer_range: f64,
    /// What each layer sees of the context.
    pub layer_types: Vec<LayerType>,
    /// How sliding layers see, if there are any.
    pub sliding: Option<Sliding>,
}

/// What a sliding layer sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sliding {
    /// W: tokens.
    pub window: i64,
    /// Where the window begins.
    pub rule: WindowRule,
    /// A slot sees only the slots up to its own.
    pub causal: bool,
}

/// The tapped layers of a target with `target_layers` layers, `count` of them (the paper's formula).
///
/// Rounds halves to even, as Python does: 30 layers tapped 5 times give 1, 8, 14, 20, 27.
#[must_use]
pub fn target_layer_ids(target_layers: usize, count: usize) -> Vec<usize> {
    if count == 1 {
        return vec![target_layers / 2];
    }
    let span = target_layers as f64 - 4.0;
    (0..count).map(|i| (1.0 + i as f64 * span / (count as f64 - 1.0)).round_ties_even().max(0.0) as usize).collect()
}

impl DrafterConfig {
    /// The shape of a drafter for a target.
    #[must_use]
    pub fn for_target(target: &TargetConfig, drafter: &crate::config::Drafter) -> Self {
        let taps = if drafter.taps == 0 { drafter.layers } else { drafter.taps };
        let ids = if drafter.target_layer_ids.is_empty() {
            target_layer_ids(target.layers as usize, taps)
        } else {
            drafter.target_layer_ids.clone()
        };
        let layer_types = match &drafter.layer_types[..] {
            [] => vec![LayerType::FullAttention; drafter.layers],
            given => given.to_vec(),
        };
        let sliding = Sliding {
            window: drafter.sliding_window as i64,
            rule: drafter.window_rule,
            causal: drafter.sliding_causal,
        };
        Self {
            sliding: layer_types.contains(&LayerType::SlidingAttention).then_some(sliding),
            layer_types,
            hidden_size: target.hidden_size,
            intermediate_size: target.intermediate_size,
            layers: drafter.layers as i64,
            heads: target.heads,
            kv_heads: target.kv_heads,
            head_dim: target.head_dim,
            vocab_size: target.vocab_size,
            rms_norm_eps: target.rms_norm_eps,
            rope_theta: target.rope_theta,
            attention_bias: false,
            max_positions: target.max_positions,
            block_size: drafter.block_size as i64,
            mask_token_id: drafter.mask_token_id,
            target_layer_ids: ids,
            target_layers: target.layers,
            initializer_range: drafter.initializer_range,
        }
    }

    /// Width of the concatenated taps: n · D.
    #[must_use]
    pub fn feature_width(&self) -> i64 {
        self.target_layer_ids.len() as i64 * self.hidden_size
    }

    /// Refuses a drafter that does not fit its target.
    ///
    /// # Errors
    /// Names the field.
    pub fn check(&self, target: &TargetConfig, path: &Path) -> Result<(), ModelError> {
        let problem = if self.hidden_size != target.hidden_size {
            format!("hidden_size {} is not the target's {}", self.hidden_size, target.hidden_size)
        } else if self.vocab_size != target.vocab_size {
            format!("vocab_size {} is not the target's {}", self.vocab_size, target.vocab_size)
        } else if self.target_layers != target.layers {
            format!(
                "num_target_layers is {}, the target has {}: made for another one",
                self.target_layers, target.layers
            )
        } else if !(0..target.vocab_size).contains(&self.mask_token_id) {
            format!("mask_token_id {} lies outside the vocabulary 0..{}", self.mask_token_id, target.vocab_size)
        } else if let Some(id) = self.target_layer_ids.iter().find(|&&id| id as i64 >= target.layers) {
            format!("target_layer_ids: there is no layer {id}; the target has layers 0..{}", target.layers - 1)
        } else if self.target_layer_ids.is_empty() {
            "target_layer_ids is empty".to_owned()
        } else {
            return Ok(());
        };
        Err(ModelError::Config { path: path.into(), message: problem })
    }
}

/// A drafter's rotary positions are never scaled (a scaled target would be served with other positions).
pub(super) const ROPE_SCALING: RopeScaling = RopeScaling::Default;

#[cfg(test)]
mod tests {
    use super::target_layer_ids;

    #[test]
    fn tapped_layers_follow_the_papers_formula() {
        for (layers, ids) in [
            (24, [1, 6, 11, 16, 21]),
            (28, [1, 7, 13, 19, 25]),
            (30, [1, 8, 14, 20, 27]),
            (36, [1, 9, 17, 25, 33]),
            (40, [1, 10, 19, 28, 37]),
            (64, [1, 16, 31, 46, 61]),
        ] {
            assert_eq!(target_layer_ids(layers, 5), ids, "{layers} layers");
        }
        assert_eq!(target_layer_ids(30, 1), [15]);
    }
}
