//! Whether a given drafter has the shape that a configuration asks for.

use super::{DrafterConfig, Sliding};
use serde::Serialize;
use serde_json::json;

impl DrafterConfig {
    /// Every field in which a given drafter (`self`) is not what the configuration asks for, with both values; empty: none.
    ///
    /// Only what says how random weights are drawn does not count.
    #[must_use]
    pub fn differences(&self, asked: &Self) -> String {
        // Whoever adds a field decides here what becomes of it.
        let Self {
            hidden_size,
            intermediate_size,
            layers,
            heads,
            kv_heads,
            head_dim,
            vocab_size,
            rms_norm_eps,
            rope_theta,
            attention_bias,
            max_positions,
            block_size,
            mask_token_id,
            target_layer_ids,
            target_layers,
            initializer_range: _,
            layer_types,
            sliding,
        } = self;
        let found = [
            differs("layers", layers, &asked.layers),
            differs("block_size", block_size, &asked.block_size),
            differs("mask_token_id", mask_token_id, &asked.mask_token_id),
            differs("target_layer_ids", target_layer_ids, &asked.target_layer_ids),
            differs("the target's number of layers", target_layers, &asked.target_layers),
            differs("layer_types", layer_types, &asked.layer_types),
            sliding_differs(sliding.as_ref(), asked.sliding.as_ref()),
            differs("hidden size", hidden_size, &asked.hidden_size),
            differs("intermediate size", intermediate_size, &asked.intermediate_size),
            differs("heads", heads, &asked.heads),
            differs("key and value heads", kv_heads, &asked.kv_heads),
            differs("head size", head_dim, &asked.head_dim),
            differs("vocabulary", vocab_size, &asked.vocab_size),
            differs("rms_norm_eps", rms_norm_eps, &asked.rms_norm_eps),
            differs("rope_theta", rope_theta, &asked.rope_theta),
            differs("attention_bias", attention_bias, &asked.attention_bias),
            differs("longest sequence", max_positions, &asked.max_positions),
        ];
        found.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }
}

/// Both values as they are written in files.
fn differs<T: PartialEq + Serialize>(name: &str, has: &T, wants: &T) -> Option<String> {
    (has != wants).then(|| format!("{name} is {} there and {} in the configuration", json!(has), json!(wants)))
}

/// Where only one has sliding layers, `layer_types` says so.
fn sliding_differs(has: Option<&Sliding>, wants: Option<&Sliding>) -> Option<String> {
    let (has, wants) = (has?, wants?);
    let found = [
        differs("sliding_window", &has.window, &wants.window),
        differs("window_rule", &has.rule, &wants.rule),
        differs("sliding_causal", &has.causal, &wants.causal),
    ];
    let found: Vec<_> = found.into_iter().flatten().collect();
    (!found.is_empty()).then(|| found.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{LayerType, WindowRule};

    fn shape() -> DrafterConfig {
        DrafterConfig {
            hidden_size: 8,
            intermediate_size: 16,
            layers: 2,
            heads: 2,
            kv_heads: 1,
            head_dim: 4,
            vocab_size: 50,
            rms_norm_eps: 1e-5,
            rope_theta: 1e4,
            attention_bias: false,
            max_positions: 64,
            block_size: 4,
            mask_token_id: 49,
            target_layer_ids: vec![1, 3],
            target_layers: 6,
            initializer_range: 0.02,
            layer_types: vec![LayerType::FullAttention; 2],
            sliding: None,
        }
    }

    #[test]
    fn every_field_counts_but_how_weights_are_drawn() {
        let asked = shape();
        assert_eq!(DrafterConfig { initializer_range: 0.1, ..shape() }.differences(&asked), "");
        let sliding = Sliding { window: 16, rule: WindowRule::Slot, causal: true };
        let types = vec![LayerType::SlidingAttention, LayerType::FullAttention];
        let slides = DrafterConfig { layer_types: types, sliding: Some(sliding), ..shape() };
        assert_eq!(
            slides.differences(&asked),
            "layer_types is [\"sliding_attention\",\"full_attention\"] there and [\"full_attention\",\"full_attention\"] in \
             the configuration"
        );
        let other = Sliding { window: 8, rule: WindowRule::Anchor, causal: false };
        let found = DrafterConfig { sliding: Some(other), ..slides.clone() }.differences(&slides);
        for part in ["sliding_window is 8 there and 16", "window_rule is ", "sliding_causal is false there and true"] {
            assert!(found.contains(part), "{found}");
        }
        let others = [
            DrafterConfig { intermediate_size: 17, ..shape() },
            DrafterConfig { heads: 4, ..shape() },
            DrafterConfig { kv_heads: 2, ..shape() },
            DrafterConfig { head_dim: 8, ..shape() },
            DrafterConfig { rope_theta: 1e6, ..shape() },
            DrafterConfig { rms_norm_eps: 1e-6, ..shape() },
            DrafterConfig { attention_bias: true, ..shape() },
            DrafterConfig { max_positions: 32, ..shape() },
            DrafterConfig { target_layers: 7, ..shape() },
        ];
        for other in others {
            assert!(!other.differences(&asked).is_empty(), "{other:?}");
        }
    }
}
