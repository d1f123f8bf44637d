//! Attention of blocks to their context and to themselves, exact.

use super::mask::{BlockMask, Sight, View};
use crate::config::LayerType;
use crate::model::attention::masked;
use tch::{Kind, Tensor};

/// Keys and values, [b, G, rows, d] each.
pub(super) type KeysValues = (Tensor, Tensor);

/// q [b, H, Q, d] with Q = N·B over a context of S rows and the Q rows of the blocks -> [b, H, Q, d].
pub(super) fn attend(
    q: &Tensor,
    context: &KeysValues,
    own: &KeysValues,
    mask: &BlockMask,
    layer: LayerType,
    block: i64,
) -> Tensor {
    if let Some(walk) = &mask.walk {
        return walk.attend(q, (&context.0, &context.1), (&own.0, &own.1), layer);
    }
    let parts: Vec<Tensor> = mask
        .groups
        .iter()
        .map(|group| {
            let view = group.view(layer);
            let slots = |t: &Tensor| t.narrow(2, group.first * block, group.blocks * block);
            let rows = |t: &Tensor| t.narrow(2, view.from, view.rows);
            let context = (rows(&context.0), rows(&context.1));
            one_group(&slots(q), &context, &(slots(&own.0), slots(&own.1)), view, block)
        })
        .collect();
    if parts.len() == 1 { parts.into_iter().next().unwrap_or_default() } else { Tensor::cat(&parts, 2) }
}

fn one_group(q: &Tensor, context: &KeysValues, own: &KeysValues, view: &View, block: i64) -> Tensor {
    match &view.sight {
        Sight::Apart { far, near } => apart(q, context, own, (far.as_ref(), near.as_ref()), block),
        Sight::Joined(mask) => {
            let keys = Tensor::cat(&[&context.0, &own.0], 2);
            let values = Tensor::cat(&[&context.1, &own.1], 2);
            masked(q, &keys, &values, mask)
        }
    }
}

/// Scores against the context are [.., N, B, S], those against the own block [.., N, B, B]: one softmax runs over both
/// side by side. Masks are additive, broadcast to these; without one, all is seen.
fn apart(
    q: &Tensor,
    context: &KeysValues,
    own: &KeysValues,
    masks: (Option<&Tensor>, Option<&Tensor>),
    block: i64,
) -> Tensor {
    let [b, heads, rows, d] = q.size()[..] else { unreachable!("q is [b, H, Q, d]") };
    let (groups, s) = (context.0.size()[1], context.0.size()[2]);
    let (repeat, blocks) = (heads / groups, rows / block);
    let q = q * (d as f64).powf(-0.5);
    // Query heads of a group become further rows of it.
    let far = q.reshape([b, groups, repeat * rows, d]).matmul(&context.0.transpose(-1, -2));
    let far = under(far.to_kind(Kind::Float).view([b, groups, repeat, blocks, block, s]), masks.0);
    // [b, G, r, N, B, d] x [b, G, 1, N, d, B]
    let in_blocks = |t: &Tensor| t.reshape([b, groups, -1, blocks, block, d]);
    let near = in_blocks(&q).matmul(&in_blocks(&own.0).transpose(-1, -2));
    let near = under(near.to_kind(Kind::Float), masks.1);
    let p = Tensor::cat(&[far, near], -1).softmax(-1, Kind::Float).to_kind(q.kind());
    let from_context = p.narrow(-1, 0, s).reshape([b, groups, repeat * rows, s]).matmul(&context.1);
    let from_block = p.narrow(-1, s, block).matmul(&in_blocks(&own.1));
    from_context.reshape([b, heads, rows, d]) + from_block.reshape([b, heads, rows, d])
}

fn under(scores: Tensor, mask: Option<&Tensor>) -> Tensor {
    match mask {
        Some(mask) => scores + mask,
        None => scores,
    }
}
