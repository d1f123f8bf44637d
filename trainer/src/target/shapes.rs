//! Shapes of targets by name: what random weights are made for.

use super::{Family, TargetConfig};
use crate::model::RopeScaling;

impl TargetConfig {
    /// The names that [`TargetConfig::named`] knows.
    pub const NAMES: [&str; 3] = ["qwen3-8b", "qwen3-0.6b", "tiny"];

    /// The shape of a public model, or one that a test has time for; `None`: no such name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        let qwen3 = |hidden_size, intermediate_size, layers, heads| Self {
            family: Family::Qwen3,
            hidden_size,
            intermediate_size,
            layers,
            heads,
            kv_heads: 8,
            head_dim: 128,
            vocab_size: 151_936,
            rms_norm_eps: 1e-6,
            rope_theta: 1e6,
            rope_scaling: RopeScaling::Default,
            max_positions: 4096,
            tied: false,
            bos_token_id: None,
            eos_token_ids: Vec::new(),
        };
        match name {
            "qwen3-8b" => Some(qwen3(4096, 12_288, 36, 32)),
            "qwen3-0.6b" => Some(qwen3(1024, 3072, 28, 16)),
            "tiny" => Some(Self { kv_heads: 2, head_dim: 16, vocab_size: 384, ..qwen3(64, 128, 8, 4) }),
            _ => None,
        }
    }
}
