//! Targets of Qwen3's shapes, and what drafters are trained on beside them.

use dflash_trainer::config::Drafter;
use dflash_trainer::model::RopeScaling;
use dflash_trainer::target::{Family, TargetConfig};

/// Tokens that all of them know.
pub const VOCABULARY: i64 = 151_936;

/// A target's shape, and how its drafter is trained.
#[derive(Clone, Copy)]
pub struct Shape {
    pub hidden: i64,
    pub ffn: i64,
    pub heads: i64,
    pub layers: i64,
    pub tokens: i64,
    pub anchors: usize,
}

impl Shape {
    /// `8b` or `0.6b`.
    pub fn of(name: &str) -> Result<Self, String> {
        match name {
            "8b" => Ok(Self { hidden: 4096, ffn: 12288, heads: 32, layers: 36, tokens: 3072, anchors: 512 }),
            "0.6b" => Ok(Self { hidden: 1024, ffn: 3072, heads: 16, layers: 28, tokens: 512, anchors: 64 }),
            other => Err(format!("no shape {other}: 8b or 0.6b")),
        }
    }

    pub fn target(self) -> TargetConfig {
        TargetConfig {
            family: Family::Qwen3,
            hidden_size: self.hidden,
            intermediate_size: self.ffn,
            layers: self.layers,
            heads: self.heads,
            kv_heads: 8,
            head_dim: 128,
            vocab_size: VOCABULARY,
            rms_norm_eps: 1e-6,
            rope_theta: 1e6,
            rope_scaling: RopeScaling::Default,
            max_positions: 4096,
            tied: false,
            bos_token_id: None,
            eos_token_ids: Vec::new(),
        }
    }
}

/// The drafter of all of them.
pub fn drafter() -> Drafter {
    Drafter { layers: 5, block_size: 16, mask_token_id: VOCABULARY - 1, ..Drafter::default() }
}
