//! Grouped-query attention: several query heads share one key/value head.

use std::sync::atomic::{AtomicBool, Ordering};
use tch::{Device, Kind, Tensor};

/// Whether libtorch's kernel lets several query heads share a key/value head.
static SHARED: AtomicBool = AtomicBool::new(true);

/// Says whether it does, for the whole process; else keys and values are repeated for it.
pub fn share_heads(shared: bool) {
    SHARED.store(shared, Ordering::Relaxed);
}

/// [b, rows, heads · d] -> [b, heads, rows, d]
pub fn split_heads(x: &Tensor, head_dim: i64) -> Tensor {
    let size = x.size();
    x.view([size[0], size[1], -1, head_dim]).transpose(1, 2)
}

/// [b, heads, rows, d] -> [b, rows, heads · d]
pub fn merge_heads(x: &Tensor) -> Tensor {
    x.transpose(1, 2).flatten(2, 3)
}

/// Causal attention of rows to themselves and earlier rows; q [b, H, S, d], k and v [b, G, S, d] -> [b, H, S, d].
pub fn causal(q: &Tensor, k: &Tensor, v: &Tensor) -> Tensor {
    let rows = q.size()[2];
    if q.device() == Device::Cpu {
        return masked(q, k, v, &causal_mask(0, rows, rows, q.kind(), Device::Cpu));
    }
    let repeat = q.size()[1] / k.size()[1];
    if repeat > 1 && !SHARED.load(Ordering::Relaxed) {
        let repeated = |t: &Tensor| t.repeat_interleave_self_int(repeat, 1, None);
        let (k, v) = (repeated(k), repeated(v));
        return Tensor::scaled_dot_product_attention(q, &k, &v, None::<Tensor>, 0.0, true, None, false);
    }
    Tensor::scaled_dot_product_attention(q, k, v, None::<Tensor>, 0.0, true, None, true)
}

/// Attention under an additive mask; q [b, H, Q, d], k and v [b, G, K, d], mask broadcast to [b, 1, Q, K] -> [b, H, Q, d].
///
/// Query heads of a group are laid out as further rows of it, so that keys and values need not be repeated.
pub fn masked(q: &Tensor, k: &Tensor, v: &Tensor, mask: &Tensor) -> Tensor {
    let [batch, heads, rows, dim] = q.size()[..] else { unreachable!("q is [b, H, Q, d]") };
    let groups = k.size()[1];
    let repeat = heads / groups;
    let folded = q.reshape([batch, groups, repeat * rows, dim]);
    let out = if q.device() == Device::Cpu {
        let mask = mask.unsqueeze(2).to_kind(Kind::Float);
        plain(&folded, k, v, |scores| (scores.view([batch, groups, repeat, rows, -1]) + mask).flatten(2, 3))
    } else {
        let mask = mask.repeat([1, 1, repeat, 1]);
        Tensor::scaled_dot_product_attention(&folded, k, v, Some(&mask), 0.0, false, None, false)
    };
    out.reshape([batch, heads, rows, dim])
}

/// Two matrix products and a softmax in float32. On the CPU this is faster than libtorch's fused kernel, whose small
/// bfloat16 products go to MKL's unoptimised path on other makers' processors; these go to oneDNN.
fn plain(q: &Tensor, k: &Tensor, v: &Tensor, masked: impl FnOnce(Tensor) -> Tensor) -> Tensor {
    let scale = (q.size()[3] as f64).powf(-0.5);
    // Rows with gaps between the heads are slower to multiply than to copy.
    let (k, v) = (k.contiguous(), v.contiguous());
    let scores = (q * scale).matmul(&k.transpose(-1, -2)).to_kind(Kind::Float);
    masked(scores).softmax(-1, Kind::Float).to_kind(q.kind()).matmul(&v)
}

/// The likeliest token of each row [.., V] -> [..]; of equals, the lowest id.
pub fn likeliest(logits: &Tensor) -> Tensor {
    // `max` names the first of equals, as `argmax` does, and is three times as fast in bfloat16 on the CPU.
    logits.max_dim(-1, false).1
}

/// Row k of `rows` rows behind `start` earlier ones sees those and the rows up to its own, of `columns` in all: additive,
/// [1, 1, rows, columns].
pub fn causal_mask(start: i64, rows: i64, columns: i64, kind: Kind, device: Device) -> Tensor {
    let hidden = Tensor::ones([rows, columns], (Kind::Bool, device)).triu(start + 1);
    let mask = Tensor::zeros([rows, columns], (kind, device)).masked_fill(&hidden, f64::NEG_INFINITY);
    mask.view([1, 1, rows, columns])
}

/// Causal attention inside documents, one at a time; `spans`: begin and end of each row's documents, ascending. What lies in
/// none is zero. Shapes as for [`causal`].
pub fn by_document(q: &Tensor, k: &Tensor, v: &Tensor, spans: &[Vec<(i64, i64)>]) -> Tensor {
    let rows: Vec<Tensor> = (0..).zip(spans).map(|(row, spans)| one_row(q, k, v, row, spans)).collect();
    Tensor::cat(&rows, 0)
}

fn one_row(q: &Tensor, k: &Tensor, v: &Tensor, row: i64, spans: &[(i64, i64)]) -> Tensor {
    let part = |t: &Tensor, start: i64, end: i64| t.narrow(0, row, 1).narrow(2, start, end - start);
    let (mut parts, mut at, length) = (Vec::new(), 0, q.size()[2]);
    for &(start, end) in spans {
        if start > at {
            parts.push(part(q, at, start).zeros_like());
        }
        parts.push(causal(&part(q, start, end), &part(k, start, end), &part(v, start, end)));
        at = end;
    }
    if at < length {
        parts.push(part(q, at, length).zeros_like());
    }
    Tensor::cat(&parts, 2)
}
