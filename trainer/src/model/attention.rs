//! Grouped-query attention: several query heads share one key/value head.

use tch::Tensor;

/// [b, rows, heads · d] -> [b, heads, rows, d]
#[must_use]
pub fn split_heads(x: &Tensor, head_dim: i64) -> Tensor {
    let size = x.size();
    x.view([size[0], size[1], -1, head_dim]).transpose(1, 2)
}

/// [b, heads, rows, d] -> [b, rows, heads · d]
#[must_use]
pub fn merge_heads(x: &Tensor) -> Tensor {
    x.transpose(1, 2).flatten(2, 3)
}

/// Causal attention of rows to themselves and earlier rows; q [b, H, S, d], k and v [b, G, S, d] -> [b, H, S, d].
#[must_use]
pub fn causal(q: &Tensor, k: &Tensor, v: &Tensor) -> Tensor {
    let repeat = q.size()[1] / k.size()[1];
    let (k, v) = (k.repeat_interleave_self_int(repeat, 1, None), v.repeat_interleave_self_int(repeat, 1, None));
    Tensor::scaled_dot_product_attention(q, &k, &v, None::<Tensor>, 0.0, true, None, false)
}

/// Attention under an additive mask; q [b, H, Q, d], k and v [b, G, K, d], mask broadcast to [b, 1, Q, K] -> [b, H, Q, d].
///
/// Query heads of a group are laid out as further rows of it, so that keys and values need not be repeated.
#[must_use]
pub fn masked(q: &Tensor, k: &Tensor, v: &Tensor, mask: &Tensor) -> Tensor {
    let [batch, heads, rows, dim] = q.size()[..] else { unreachable!("q is [b, H, Q, d]") };
    let groups = k.size()[1];
    let repeat = heads / groups;
    let folded = q.reshape([batch, groups, repeat * rows, dim]);
    let mask = mask.repeat([1, 1, repeat, 1]);
    let out = Tensor::scaled_dot_product_attention(&folded, k, v, Some(&mask), 0.0, false, None, false);
    out.reshape([batch, heads, rows, dim])
}
