//! What the blocks of a batch see, made once for all layers.
//!
//! Anchors ascend, so blocks are cut into groups: a group looks only at the part of the context that its blocks see and at
//! itself, and its masks are small. The N·B × (S + N·B) mask never exists, unless it is asked for as a check.

use super::blocks::{Blocks, Reach};
use super::config::{DrafterConfig, Sliding};
use super::visible::{Part, additive, context, inside};
use super::walk::Walk;
use crate::config::{LayerType, MaskForm, WindowRule};
use tch::{Device, Kind, Tensor};

/// Blocks of a group: fewer would make many small products, more would look at context that most of them do not see.
const GROUP: i64 = 64;
/// A group's part of the context is rounded out to a multiple of this, so that shapes repeat from step to step.
const ROUND: i64 = 64;

/// What the blocks see, by kind of layer.
#[derive(Debug)]
pub struct BlockMask {
    /// Empty where our own kernel does it.
    pub(super) groups: Vec<Group>,
    pub(super) walk: Option<Walk>,
}

/// Some blocks of each sequence.
#[derive(Debug)]
pub(super) struct Group {
    pub(super) first: i64,
    pub(super) blocks: i64,
    full: Option<View>,
    sliding: Option<View>,
}

/// What a group sees.
#[derive(Debug)]
pub(super) struct View {
    /// First context row that it looks at.
    pub(super) from: i64,
    /// How many.
    pub(super) rows: i64,
    pub(super) sight: Sight,
}

/// Masks, additive.
#[derive(Debug)]
pub(super) enum Sight {
    /// Context and own block beside each other: far [b, 1, 1, blocks, B or 1, rows], near [B, B]; `None`: all is seen.
    Apart { far: Option<Tensor>, near: Option<Tensor> },
    /// Context and all blocks of the group in one: [b, 1, blocks · B, rows + blocks · B].
    Joined(Tensor),
}

impl BlockMask {
    /// The masks that a drafter's layers need, for a context of `rows` rows; `kind` is the drafter's arithmetic.
    #[must_use]
    pub fn new(blocks: &Blocks, rows: i64, config: &DrafterConfig, form: MaskForm, kind: Kind) -> Self {
        if let Some(walk) = Walk::new(blocks, config, form, kind) {
            return Self { groups: Vec::new(), walk: Some(walk) };
        }
        let [_, n] = blocks.anchors.size()[..] else { unreachable!("anchors are [b, N]") };
        let step = if form == MaskForm::Dense { n } else { GROUP };
        let has = |which| config.layer_types.contains(&which);
        let groups = (0..n).step_by(step.max(1) as usize).map(|first| {
            let count = step.min(n - first);
            let view = |sliding| {
                let (from, rows) = match form {
                    MaskForm::Dense => (0, rows),
                    MaskForm::Fused => reach(blocks, first, count, rows, sliding),
                };
                let part = Part { first, blocks: count, from, rows };
                View { from, rows, sight: sight(blocks, part, config.block_size, sliding, form, kind) }
            };
            Group {
                first,
                blocks: count,
                full: has(LayerType::FullAttention).then(|| view(None)),
                sliding: config.sliding.filter(|_| has(LayerType::SlidingAttention)).map(|s| view(Some(s))),
            }
        });
        Self { groups: groups.collect(), walk: None }
    }

    /// The masks of one block right behind a context of `rows` rows, as at inference: sliding layers see what they saw in
    /// training.
    #[must_use]
    pub fn behind(rows: i64, block: i64, config: &DrafterConfig, device: Device) -> Self {
        let whole = View { from: 0, rows, sight: Sight::Apart { far: None, near: None } };
        let sliding = config.sliding.map(|sliding| {
            let from = (rows - sliding.window).max(0);
            let far = window(rows, block, from, sliding, device);
            let far = additive(&far, Kind::Float).view([1, 1, 1, 1, block, rows - from]);
            let near = inside(block, Some(sliding), device).map(|seen| additive(&seen, Kind::Float));
            View { from, rows: rows - from, sight: Sight::Apart { far: Some(far), near } }
        });
        Self { groups: vec![Group { first: 0, blocks: 1, full: Some(whole), sliding }], walk: None }
    }

    /// The whole mask as tests know it: [b, N·B, S + N·B] Bool, true = visible. Only for small shapes.
    pub fn dense(blocks: &Blocks, rows: i64, config: &DrafterConfig, layer: LayerType) -> Tensor {
        let count = blocks.anchors.size()[1];
        let sliding = config.sliding.filter(|_| layer == LayerType::SlidingAttention);
        let part = Part { first: 0, blocks: count, from: 0, rows };
        joined(blocks, part, config.block_size, sliding)
    }
}

impl Group {
    pub(super) fn view(&self, layer: LayerType) -> &View {
        let view = match layer {
            LayerType::FullAttention => &self.full,
            LayerType::SlidingAttention => &self.sliding,
        };
        let Some(view) = view else { unreachable!("a mask is made for every kind of layer that the drafter has") };
        view
    }
}

/// The context rows that some block of a group sees, rounded out: (first, how many).
fn reach(blocks: &Blocks, first: i64, count: i64, rows: i64, sliding: Option<Sliding>) -> (i64, i64) {
    let n = blocks.anchors.size()[1];
    let own = blocks.reach.chunks(n as usize).flat_map(|row| &row[first as usize..(first + count) as usize]);
    let (mut from, mut end) = (rows, 0);
    for &Reach { start, anchor } in own.flatten() {
        let window = match sliding {
            None => 0,
            Some(Sliding { window, rule: WindowRule::Slot, .. }) => anchor - window + 1,
            Some(Sliding { window, rule: WindowRule::Anchor, .. }) => anchor - window,
        };
        from = from.min(start.max(window));
        end = end.max(anchor);
    }
    let from = (from.min(end) / ROUND * ROUND).max(0);
    (from, (rows - from).min((end - from + ROUND - 1) / ROUND * ROUND))
}

/// What the slots of a block at anchor `rows` see of the rows from `from` on: [B, rows - from] Bool.
fn window(rows: i64, block: i64, from: i64, sliding: Sliding, device: Device) -> Tensor {
    let options = (Kind::Int64, device);
    let row = Tensor::arange_start(from, rows, options).unsqueeze(0);
    let slot = Tensor::arange(block, options).unsqueeze(1);
    match sliding.rule {
        WindowRule::Slot => (slot + rows - row).lt(sliding.window),
        WindowRule::Anchor => row.ge(rows - sliding.window).expand([block, rows - from], false),
    }
}

fn sight(blocks: &Blocks, part: Part, block: i64, sliding: Option<Sliding>, form: MaskForm, kind: Kind) -> Sight {
    let device = blocks.anchors.device();
    // A GPU's fused kernels take one mask over all keys; on the CPU two small products are faster than one with holes.
    if form == MaskForm::Dense || device.is_cuda() {
        return Sight::Joined(additive(&joined(blocks, part, block, sliding), kind).unsqueeze(1));
    }
    let far = additive(&context(blocks, part, block, sliding), Kind::Float).unsqueeze(1).unsqueeze(1);
    Sight::Apart { far: Some(far), near: inside(block, sliding, device).map(|seen| additive(&seen, Kind::Float)) }
}

/// [b, blocks · B, rows + blocks · B] Bool
fn joined(blocks: &Blocks, part: Part, block: i64, sliding: Option<Sliding>) -> Tensor {
    let device = blocks.anchors.device();
    let far = context(blocks, part, block, sliding);
    let [b, count, _, rows] = far.size()[..] else { unreachable!("[b, blocks, B, rows]") };
    let slots = count * block;
    let far = far.expand([b, count, block, rows], false).reshape([b, slots, rows]);
    let own = inside(block, sliding, device).unwrap_or_else(|| Tensor::ones([block, block], (Kind::Bool, device)));
    let diagonal = Tensor::eye(count, (Kind::Bool, device)).view([count, 1, count, 1]);
    let near = diagonal.logical_and(&own.view([1, block, 1, block])).view([1, slots, slots]);
    Tensor::cat(&[far, near.expand([b, slots, slots], false)], -1)
}
