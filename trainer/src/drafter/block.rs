//! Attention of blocks to their context and to themselves, exact, without ever building the N·B × (S + N·B) mask.
//!
//! A block's query sees the context before its anchor, and its own block. Scores against the context are [.., N·B, S];
//! scores against the own block are [.., N, B, B]; one softmax runs over both side by side.

use tch::{Device, Kind, Tensor};

/// Which context rows the blocks see: additive, [b, 1, 1, N·B, S], 0 or -inf.
#[derive(Debug)]
pub struct BlockMask(pub Tensor);

impl BlockMask {
    /// Context row c is visible to block j iff c < anchor j: strictly, since at inference the anchor's own hidden state
    /// does not exist yet. A block that is not kept sees only itself. anchors [b, N] (Int64), keep [b, N] (Bool).
    #[must_use]
    pub fn new(anchors: &Tensor, keep: &Tensor, context: i64, block: i64, device: Device) -> Self {
        let column = Tensor::arange(context, (Kind::Int64, device)).view([1, 1, -1]);
        let limit = anchors.where_scalarother(keep, 0).unsqueeze(-1);
        let hidden = column.ge_tensor(&limit);
        let mask = Tensor::zeros(hidden.size(), (Kind::Float, device)).masked_fill(&hidden, f64::NEG_INFINITY);
        let [b, n, s] = mask.size()[..] else { unreachable!("[b, N, S]") };
        Self(mask.unsqueeze(2).expand([b, n, block, s], false).reshape([b, 1, 1, n * block, s]))
    }
}

/// q [b, H, Q, d] with Q = N·B, context keys and values [b, G, S, d], block keys and values [b, G, Q, d] -> [b, H, Q, d].
pub fn attend(
    q: &Tensor,
    context: (&Tensor, &Tensor),
    own: (&Tensor, &Tensor),
    mask: Option<&BlockMask>,
    block: i64,
) -> Tensor {
    let [b, heads, rows, d] = q.size()[..] else { unreachable!("q is [b, H, Q, d]") };
    let (groups, s) = (context.0.size()[1], context.0.size()[2]);
    let (repeat, blocks) = (heads / groups, rows / block);
    let q = q * (d as f64).powf(-0.5);
    // Query heads of a group become further rows of it.
    let far = q.reshape([b, groups, repeat * rows, d]).matmul(&context.0.transpose(-1, -2));
    let far = far.to_kind(Kind::Float).view([b, groups, repeat, rows, s]);
    let far = match mask {
        Some(BlockMask(mask)) => far + mask,
        None => far,
    };
    // [b, G, r, N, B, d] x [b, G, 1, N, d, B]
    let in_blocks = |t: &Tensor| t.reshape([b, groups, -1, blocks, block, d]);
    let near = in_blocks(&q).matmul(&in_blocks(own.0).transpose(-1, -2));
    let near = near.to_kind(Kind::Float).reshape([b, groups, repeat, rows, block]);
    let p = Tensor::cat(&[far, near], -1).softmax(-1, Kind::Float).to_kind(q.kind());
    let from_context = p.narrow(-1, 0, s).reshape([b, groups, repeat * rows, s]).matmul(context.1);
    let from_block =
        p.narrow(-1, s, block).reshape([b, groups, repeat, blocks, block, block]).matmul(&in_blocks(own.1));
    from_context.reshape([b, heads, rows, d]) + from_block.reshape([b, heads, rows, d])
}
