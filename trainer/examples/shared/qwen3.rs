//! Targets of Qwen3's shapes, and what drafters are trained on beside them.

use dflash_trainer::config::Drafter;
use dflash_trainer::target::TargetConfig;

/// Tokens that all of them know.
pub const VOCABULARY: i64 = 151_936;

/// A target's shape, and how its drafter is trained.
#[derive(Clone, Debug)]
pub struct Shape {
    pub target: TargetConfig,
    pub tokens: i64,
    pub anchors: usize,
}

impl Shape {
    /// `8b` or `0.6b`.
    pub fn of(name: &str) -> Result<Self, String> {
        let (tokens, anchors) = if name == "8b" { (3072, 512) } else { (512, 64) };
        let target = TargetConfig::named(&format!("qwen3-{name}"));
        target.map(|target| Self { target, tokens, anchors }).ok_or_else(|| format!("no shape {name}: 8b or 0.6b"))
    }
}

/// The drafter of all of them.
pub fn drafter() -> Drafter {
    Drafter { layers: 5, block_size: 16, mask_token_id: VOCABULARY - 1, ..Drafter::default() }
}
