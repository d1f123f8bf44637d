//! The slots of some blocks through the head, with their gradients.

use super::weights::{decay, dpace};
use super::{Goal, HeadRows, Teacher};
use crate::config::Objective;
use crate::drafter::Slots;
use crate::model::attention::likeliest;
use crate::model::linear;
use std::ops::Range;
use tch::{Kind, Tensor};

/// Ranges of slots, each the slots of whole blocks.
pub(super) struct Chunks<'a> {
    slots: &'a Slots,
    /// Tokens of a chunk's blocks.
    width: i64,
    at: usize,
}

impl<'a> Chunks<'a> {
    pub(super) fn new(slots: &'a Slots, goal: &Goal) -> Self {
        let width = if goal.chunk_blocks == 0 { i64::MAX } else { goal.chunk_blocks as i64 * goal.block };
        Self { slots, width, at: 0 }
    }
}

impl Iterator for Chunks<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let first = *self.slots.index.get(self.at)?;
        let chunk = first / self.width;
        let end = self.at + self.slots.index[self.at..].partition_point(|&i| i / self.width == chunk);
        let range = self.at..end;
        self.at = end;
        Some(range)
    }
}

/// Some slots on their way through the head.
pub(super) struct Chunk<'a> {
    slots: &'a Slots,
    range: Range<usize>,
    head: &'a HeadRows,
    /// [M, D]
    picked: Tensor,
    /// `[M]`: rows of the flat y
    index: Tensor,
    teacher: Option<Tensor>,
}

/// What a chunk told.
pub(super) struct Told {
    pub(super) numerator: Tensor,
    pub(super) weight: Tensor,
    /// `[M]`
    pub(super) entropy: Tensor,
    /// `[M]` Bool
    pub(super) correct: Tensor,
    /// `[M]`, with a teacher: what drafter and target have in common, 1 - total variation.
    pub(super) overlap: Option<Tensor>,
    /// [M, D]: of the numerator with regard to the picked rows.
    pub(super) gradient: Option<Tensor>,
    pub(super) index: Tensor,
}

impl<'a> Chunk<'a> {
    /// y [b · N · B, D] without its graph.
    pub(super) fn new(
        y: &Tensor,
        slots: &'a Slots,
        range: Range<usize>,
        head: &'a HeadRows,
        teacher: Option<&Teacher>,
    ) -> Self {
        let index = Slots::tensor(&slots.index[range.clone()], y.device());
        let picked = y.index_select(0, &index);
        let teacher = teacher.map(|teacher| {
            let rows = Slots::tensor(&slots.teacher[range.clone()], y.device());
            match teacher {
                Teacher::Logits(logits) => logits.flatten(0, 1).index_select(0, &rows),
                Teacher::Hidden(hidden) => linear(&hidden.flatten(0, 1).index_select(0, &rows), &head.weight, None),
            }
        });
        Self { slots, range, head, picked, index, teacher }
    }

    /// Loss and, if wanted, gradient.
    pub(super) fn run(self, goal: &Goal, wants_gradient: bool) -> Told {
        let labels = self.labels().unsqueeze(1);
        let logits = linear(&self.picked, &self.head.weight, None);
        let correct = likeliest(&logits).eq_tensor(&labels.squeeze_dim(1));
        let log_q = logits.to_kind(Kind::Float).log_softmax(-1, Kind::Float);
        let entropy = log_q.gather(1, &labels, false).squeeze_dim(1).neg();
        let weights = self.weights(&entropy, goal);
        let teacher = self.teacher.as_ref().map(|t| t.to_kind(Kind::Float).log_softmax(-1, Kind::Float));
        let overlap = teacher.as_ref().map(|log_p| log_p.minimum(&log_q).exp().sum_dim_intlist(-1, false, Kind::Float));
        let (each, aim) = match (goal.objective, teacher) {
            (Objective::Kl, Some(log_p)) => {
                let p = log_p.exp();
                ((&p * (log_p - &log_q)).sum_dim_intlist(-1, false, Kind::Float), Some(p))
            }
            _ => (entropy.shallow_clone(), None),
        };
        let numerator = (each * &weights).sum(Kind::Float);
        let gradient = wants_gradient.then(|| self.gradient(log_q, aim, &labels, &weights));
        let weight = weights.sum(Kind::Float);
        Told { numerator, weight, entropy, correct, overlap, gradient, index: self.index }
    }

    /// (q - t) · weight · head: t is the target's distribution, or one on the label.
    fn gradient(&self, mut log_q: Tensor, aim: Option<Tensor>, labels: &Tensor, weights: &Tensor) -> Tensor {
        let mut q = log_q.exp_();
        let mut off = match aim {
            Some(p) => q.g_sub_(&p),
            None => q.scatter_add_(1, labels, &Tensor::full_like(labels, -1.0).to_kind(Kind::Float)),
        };
        let off = off.g_mul_(&weights.unsqueeze(1));
        off.to_kind(self.head.weight.kind()).matmul(&self.head.weight).to_kind(self.picked.kind())
    }

    fn weights(&self, entropy: &Tensor, goal: &Goal) -> Tensor {
        let device = self.picked.device();
        if goal.objective != Objective::Dpace {
            let weights: Vec<f32> = self.own(&self.slots.slot).iter().map(|&k| decay(k, goal.gamma) as f32).collect();
            return Tensor::from_slice(&weights).to_device(device);
        }
        // Each slot in its block: the chunk's first block is row 0.
        let index = self.own(&self.slots.index);
        let first = index.first().map_or(0, |i| i / goal.block * goal.block);
        let blocks = index.last().map_or(0, |i| (i - first) / goal.block + 1);
        let at = &self.index - first;
        let whole = |kind| Tensor::zeros([blocks * goal.block], (kind, device));
        let shape = [blocks, goal.block];
        let dense = whole(Kind::Float).index_copy(0, &at, entropy).view(shape);
        let live = whole(Kind::Bool).index_fill(0, &at, 1).view(shape);
        dpace(&dense, &live, goal.alpha).view([-1]).index_select(0, &at)
    }

    fn own<'b>(&self, list: &'b [i64]) -> &'b [i64] {
        &list[self.range.clone()]
    }

    fn labels(&self) -> Tensor {
        let ids = self.own(&self.slots.label);
        let device = self.picked.device();
        match &self.head.row_of {
            None => Slots::tensor(ids, device),
            Some(rows) => Slots::tensor(&ids.iter().map(|&id| rows[id as usize]).collect::<Vec<_>>(), device),
        }
    }
}
