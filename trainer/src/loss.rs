//! Decayed cross-entropy over the supervised slots, and what it tells about them.

use crate::drafter::anchors::Slots;
use crate::model::attention::likeliest;
use crate::model::linear;
use std::sync::Arc;
use tch::{Device, Kind, Reduction, Tensor};

/// Decay along a block: exp(-(k - 1) / gamma), 1 for the first predicted slot.
#[must_use]
pub fn decay(slot: i64, gamma: f64) -> f64 {
    (-(slot as f64 - 1.0) / gamma).exp()
}

/// The paper's gamma for a block size: 7 for 16, 5 for 10, 4 for 8; between and beyond, the nearest of these.
#[must_use]
pub fn default_gamma(block_size: i64) -> f64 {
    match block_size {
        ..=8 => 4.0,
        9..=12 => 5.0,
        _ => 7.0,
    }
}

/// The head's rows that take part in the loss.
#[derive(Debug)]
pub struct HeadRows {
    /// [C, D]
    pub weight: Tensor,
    /// Row of each token id, -1 where it has none; `None` = row i is token i.
    pub row_of: Option<Arc<[i64]>>,
}

/// A loss with the sums that metrics are made of.
#[derive(Debug)]
pub struct Loss {
    /// Weighted mean over the slots; its gradient is the one that trains.
    pub mean: Tensor,
    /// Sum of weighted cross-entropies.
    pub numerator: Tensor,
    /// Sum of the weights.
    pub denominator: f64,
    /// `[M]` Bool: the slot's most likely row is its label.
    pub correct: Tensor,
}

/// Cross-entropy of drafter outputs y [b, N·B, D] (after the final norm) at the supervised slots.
///
/// Only those slots go through the head. With no slot at all the loss is zero, and so is its gradient.
#[must_use]
pub fn cross_entropy(y: &Tensor, slots: &Slots, head: &HeadRows, gamma: f64) -> Loss {
    let device = y.device();
    if slots.is_empty() {
        let zero = y.to_kind(Kind::Float).sum(Kind::Float) * 0.0;
        let correct = Tensor::zeros([0], (Kind::Bool, device));
        return Loss { mean: zero.shallow_clone(), numerator: zero, denominator: 0.0, correct };
    }
    let labels = labels(slots, head, device);
    let weights: Vec<f32> = slots.slot.iter().map(|&k| decay(k, gamma) as f32).collect();
    let denominator: f64 = weights.iter().map(|&w| f64::from(w)).sum();
    let picked = y.flatten(0, 1).index_select(0, &Slots::tensor(&slots.index, device));
    let logits = linear(&picked, &head.weight, None).to_kind(Kind::Float);
    let each = logits.cross_entropy_loss(&labels, None::<Tensor>, Reduction::None, -100, 0.0);
    let numerator = (each * Tensor::from_slice(&weights).to_device(device)).sum(Kind::Float);
    let correct = likeliest(&logits.detach()).eq_tensor(&labels);
    Loss { mean: &numerator / denominator, numerator, denominator, correct }
}

fn labels(slots: &Slots, head: &HeadRows, device: Device) -> Tensor {
    let ids = &slots.label;
    match &head.row_of {
        None => Slots::tensor(ids, device),
        Some(rows) => Slots::tensor(&ids.iter().map(|&id| rows[id as usize]).collect::<Vec<_>>(), device),
    }
}
