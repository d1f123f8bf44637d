//! What a step says about its slots and blocks: sums on the device, to be divided after they were read back.

use super::Sums;
use tch::{Kind, Tensor};

/// Sums of a step, on the device. Add them up over steps before dividing; `Slots::totals` and `Slots::blocks` are what
/// to divide by.
#[derive(Debug)]
pub struct Figures {
    /// `[B]` Int64: slots whose likeliest token is the label.
    pub hits: Tensor,
    /// `[B]`: sums of cross-entropies, without decay.
    pub entropy: Tensor,
    /// Int64 scalar: over the blocks with a supervised slot, 1 + supervised slots before the first miss: how many tokens a
    /// verification would have gained there.
    pub accepted: Tensor,
    /// With a teacher: over the same blocks, the same as an expectation under sampling: 1 + the sum of the running products
    /// of 1 - total variation.
    pub expected: Option<Tensor>,
}

impl Figures {
    /// `positions` = b · N · B.
    pub(super) fn new(sums: &Sums, index: &Tensor, block: i64, positions: i64) -> Self {
        let device = sums.device;
        let shape = [positions / block, block];
        let place = |values: &Tensor| {
            let empty = Tensor::zeros([positions], (values.kind(), device));
            empty.index_copy(0, index, values).view(shape)
        };
        let hit = place(&sums.correct());
        let live = place(&Tensor::ones(index.size(), (Kind::Bool, device)));
        let leading = hit.logical_or(&live.logical_not()).to_kind(Kind::Int64).cumprod(-1, Kind::Int64);
        let any = live.any_dim(-1, false);
        let accepted = (leading * live.to_kind(Kind::Int64)).sum(Kind::Int64) + any.sum(Kind::Int64);
        let expected = (!sums.overlaps.is_empty()).then(|| {
            let overlap = place(&Tensor::cat(&sums.overlaps, 0)).where_scalarother(&live, 1.0);
            (overlap.cumprod(-1, Kind::Float) * live.to_kind(Kind::Float)).sum(Kind::Float) + any.sum(Kind::Float)
        });
        let by_slot = |t: Tensor, kind| t.sum_dim_intlist(0, false, kind);
        Self {
            hits: by_slot(hit, Kind::Int64),
            entropy: by_slot(place(&sums.joined(&sums.entropies, Kind::Float)), Kind::Float),
            accepted,
            expected,
        }
    }
}

/// Acceptance length that a drafter of these accuracies of slots 1.. would have if slots missed independently, without the
/// target's own token.
#[must_use]
pub fn simulated_acceptance(accuracies: &[f64]) -> f64 {
    accuracies
        .iter()
        .scan(1.0, |product, accuracy| {
            *product *= accuracy;
            Some(*product)
        })
        .sum()
}
