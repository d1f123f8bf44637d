//! How much each slot weighs.

use tch::{Kind, Tensor};

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

/// D-PACE's weights of whole blocks: slot j weighs the sum over m ≥ j of the chance that slots 1..m are right, as the
/// drafter sees it now. `entropy` [blocks, B] are cross-entropies, `live` [blocks, B] tells the supervised slots; the
/// others count as certain and weigh nothing.
pub(super) fn dpace(entropy: &Tensor, live: &Tensor, alpha: f64) -> Tensor {
    let chance = (entropy.neg().exp() * (1.0 - alpha) + alpha).where_scalarother(live, 1.0);
    let prefix = chance.cumprod(-1, Kind::Float) * live.to_kind(Kind::Float);
    prefix.flip([-1]).cumsum(-1, Kind::Float).flip([-1])
}
