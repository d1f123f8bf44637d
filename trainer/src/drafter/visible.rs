//! Which context rows a block sees, as tensors.

use super::blocks::Blocks;
use super::config::Sliding;
use crate::config::WindowRule;
use tch::{Kind, Tensor};

/// Some of a batch's blocks, and some of its context rows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// First block of each sequence.
    pub(super) first: i64,
    /// How many blocks of each sequence.
    pub(super) blocks: i64,
    /// First context row.
    pub(super) from: i64,
    /// How many context rows.
    pub(super) rows: i64,
}

/// What the slots of the blocks see of the context rows: [b, blocks, B or 1, rows] Bool; 1 where all slots see the same.
///
/// Row c is seen by the block at anchor a iff c < a: strictly, since at inference the anchor's own hidden state does not
/// exist yet. Never across documents. A block that is not kept sees nothing of the context.
pub(super) fn context(blocks: &Blocks, part: Part, block: i64, sliding: Option<Sliding>) -> Tensor {
    let own = |t: &Tensor| t.narrow(1, part.first, part.blocks).unsqueeze(-1).unsqueeze(-1);
    let anchor = own(&blocks.anchors);
    let options = (Kind::Int64, anchor.device());
    let row = Tensor::arange_start(part.from, part.from + part.rows, options);
    let mut seen = row.lt_tensor(&anchor).logical_and(&own(&blocks.keep));
    if let Some(packed) = &blocks.packed {
        let document = own(&packed.documents.gather(1, &blocks.anchors, false));
        let rows = packed.documents.narrow(1, part.from, part.rows).unsqueeze(1).unsqueeze(1);
        seen = seen.logical_and(&rows.eq_tensor(&document)).logical_and(&document.ge(0));
    }
    match sliding {
        None => seen,
        Some(Sliding { window, rule: WindowRule::Slot, .. }) => {
            let slot = Tensor::arange(block, options).view([1, 1, block, 1]);
            seen.logical_and(&(anchor + slot - row).lt(window))
        }
        Some(Sliding { window, rule: WindowRule::Anchor, .. }) => seen.logical_and(&row.ge_tensor(&(anchor - window))),
    }
}

/// What a slot sees of its own block: [B, B] Bool; `None` = all.
pub(super) fn inside(block: i64, sliding: Option<Sliding>, device: tch::Device) -> Option<Tensor> {
    let causal = sliding.is_some_and(|s| s.causal);
    causal.then(|| Tensor::ones([block, block], (Kind::Bool, device)).tril(0))
}

/// 0 where visible, -inf where not.
pub(super) fn additive(visible: &Tensor, kind: Kind) -> Tensor {
    visible.zeros_like().to_kind(kind).masked_fill(&visible.logical_not(), f64::NEG_INFINITY)
}
