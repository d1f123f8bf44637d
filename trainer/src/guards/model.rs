//! Guards of the target: its taps and its head.

use super::{Verdict, fault};
use crate::target::Target;
use tch::{Kind, Tensor};

/// Tapped layers exist, do not descend, and leave the last one out: what serving engines hand out for that is behind the final norm.
///
/// # Errors
/// Names the id.
pub fn tap_ids(ids: &[usize], layers: i64) -> Verdict {
    if ids.is_empty() {
        return fault("tap_ids", "no layer is tapped");
    }
    if let Some(id) = ids.iter().find(|&&id| id as i64 >= layers) {
        return fault("tap_ids", format!("there is no layer {id}: the target has layers 0..{}", layers - 1));
    }
    if ids.contains(&(layers as usize - 1)) && layers > 1 {
        return fault(
            "tap_ids",
            format!("layer {} is the last: its output is read behind the final norm when served", layers - 1),
        );
    }
    match ids.windows(2).find(|pair| pair[0] > pair[1]) {
        Some(pair) => fault("tap_ids", format!("ids must ascend, found {} before {}", pair[0], pair[1])),
        None => Ok(()),
    }
}

/// Each tap is what a forward pass that is cut after that layer leaves: id i is the output of layer i.
///
/// # Errors
/// Names the layer.
pub fn taps(target: &Target, ids: &[i64], layers: &[usize]) -> Verdict {
    let input = Tensor::from_slice(ids).unsqueeze(0).to_device(target.device());
    let read = target.features(&input, layers, false).taps;
    compare(layers, &read, |layer| target.features(&input, &[layer], false).last)
}

/// Compares what was tapped with what `cut` leaves after a layer.
pub(super) fn compare(layers: &[usize], read: &[Tensor], cut: impl Fn(usize) -> Tensor) -> Verdict {
    if read.len() != layers.len() {
        return fault("taps", format!("{} taps for {} layers", read.len(), layers.len()));
    }
    for (&layer, tap) in layers.iter().zip(read) {
        let want = cut(layer);
        if tap.size() != want.size() || !tap.equal(&want) {
            return fault("taps", format!("tap {layer} is not the output of layer {layer}"));
        }
    }
    Ok(())
}

/// The head is the target's own: the embedding where it is tied, and numbers that were loaded where it is not.
///
/// # Errors
/// A tied head differs from the embedding, has another shape, or holds what is no number or nothing but zeros.
pub fn head(tied: bool, embedding: &Tensor, head: &Tensor) -> Verdict {
    if head.size() != embedding.size() {
        return fault(
            "head",
            format!("the head's shape {:?} is not the embedding's {:?}", head.size(), embedding.size()),
        );
    }
    if tied && !head.equal(embedding) {
        return fault("head", "the target ties its head to its embedding, but they differ: the head was not tied");
    }
    for (name, t) in [("embedding", embedding), ("head", head)] {
        if t.isfinite().all().int64_value(&[]) == 0 {
            return fault("head", format!("the {name} holds what is no number: fetch or convert the target again"));
        }
        if t.abs().max().to_kind(Kind::Double).double_value(&[]) == 0.0 {
            return fault("head", format!("the {name} is all zeros: it was not loaded"));
        }
    }
    Ok(())
}
