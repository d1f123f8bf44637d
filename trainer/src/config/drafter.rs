//! `[drafter]`: its shape, and how it is computed.

use super::section::section;
use super::{LayerType, MaskForm, WindowRule};
use std::path::PathBuf;

section! {
    /// The drafter's shape. What is not named here (hidden size, heads, RoPE) is the target's.
    Drafter {
        /// A drafter's directory to begin with, ours or a published one, instead of random weights; empty = random. Its
        /// shape must be the one that the other keys give.
        init: PathBuf = PathBuf::new(),
        /// Layers.
        /// Source: the paper.
        layers: usize = 5,
        /// Tokens of a block, the anchor included.
        /// Source: the paper.
        block_size: usize = 16,
        /// Number of tapped target layers; 0 = as many as layers.
        /// Source: the paper.
        taps: usize = 0,
        /// Ids of the tapped target layers (id i = the output of layer i); empty = the paper's formula.
        /// Source: the paper.
        target_layer_ids: Vec<usize> = Vec::new(),
        /// A token id that the target knows and no text contains; it stands for "to be predicted". Must be given.
        mask_token_id: i64 = -1,
        /// Standard deviation of the initial weights.
        /// Source: Hugging Face.
        initializer_range: f64 = 0.02,
        /// Initial weight of the last norm. Hugging Face starts at 1; below 1 the first logits are calmer.
        /// Source: Hugging Face.
        final_norm_init: f64 = 1.0,
        /// What each layer sees of the context, `"full_attention"` or `"sliding_attention"`, one word a layer; empty = all
        /// full.
        /// Source: the paper.
        layer_types: Vec<LayerType> = Vec::new(),
        /// Sliding layers: how far they see, tokens.
        /// Source: the published drafter of Qwen3.6-27B.
        sliding_window: usize = 2048,
        /// Sliding layers: a slot sees only the slots up to its own (SpecForge); full layers always see their whole block.
        /// Source: SpecForge.
        sliding_causal: bool = true,
        /// Sliding layers: `slot`: (a + k) - c < window (SpecForge), or `anchor`: c >= a - window (speculators).
        /// Source: SpecForge.
        window_rule: WindowRule = WindowRule::Slot,
        /// The context projection as one product a tap, summed, instead of one over the concatenated taps: same result but
        /// for rounding, smaller products.
        split_fc: bool = false,
        /// Attention `fused` (in groups of blocks) or `dense` (under one mask over everything: slower, as a check).
        mask: MaskForm = MaskForm::Fused,
    }
}
