//! The drafter that is timed.

use dflash_trainer::config::LayerType;
use dflash_trainer::drafter::{DrafterConfig, target_layer_ids};

/// The drafter of a Qwen3 target: 5 layers, blocks of 16.
pub(super) fn config(hidden_size: i64, intermediate_size: i64, heads: i64, target_layers: i64) -> DrafterConfig {
    let vocab_size = if hidden_size < 100 { 1000 } else { 151_936 };
    DrafterConfig {
        hidden_size,
        intermediate_size,
        layers: 5,
        heads,
        kv_heads: heads.min(8),
        head_dim: if hidden_size < 100 { 16 } else { 128 },
        vocab_size,
        rms_norm_eps: 1e-6,
        rope_theta: 1e6,
        attention_bias: false,
        max_positions: 4096,
        block_size: 16,
        mask_token_id: vocab_size - 1,
        target_layer_ids: target_layer_ids(target_layers as usize, 5),
        target_layers,
        initializer_range: 0.02,
        layer_types: vec![LayerType::FullAttention; 5],
        sliding: None,
    }
}
