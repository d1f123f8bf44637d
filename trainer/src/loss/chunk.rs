//! The slots of some blocks through the head, with their gradients.

use super::weights::{decay, dpace};
use super::{Goal, HeadRows, Teacher};
use crate::config::Objective;
use crate::device::upload;
use crate::drafter::Slots;
use crate::model::attention::likeliest;
use crate::model::kernels::sound;
use crate::model::linear;
use dflash_torch::fused;
use std::ops::Range;
use tch::{Device, Kind, Tensor};

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

/// What the slots need, brought to the device once for all chunks.
pub(super) struct Placed<'a> {
    slots: &'a Slots,
    /// `[M]`: rows of the flat y
    pub(super) index: Tensor,
    /// `[M]`: rows of the head
    labels: Tensor,
    /// `[M]`: decay
    decay: Tensor,
    /// `[M]`: rows of the teacher
    teacher: Option<Tensor>,
}

impl<'a> Placed<'a> {
    pub(super) fn new(slots: &'a Slots, head: &HeadRows, gamma: f64, teaches: bool, device: Device) -> Self {
        let place = |list: &[i64]| Slots::tensor(list, device);
        let labels = match &head.row_of {
            None => place(&slots.label),
            Some(rows) => place(&slots.label.iter().map(|&id| rows[id as usize]).collect::<Vec<_>>()),
        };
        let decay: Vec<f32> = slots.slot.iter().map(|&k| decay(k, gamma) as f32).collect();
        Self {
            slots,
            index: place(&slots.index),
            labels,
            decay: upload(&decay, device),
            teacher: teaches.then(|| place(&slots.teacher)),
        }
    }
}

/// Some slots on their way through the head.
pub(super) struct Chunk<'a> {
    placed: &'a Placed<'a>,
    range: Range<usize>,
    head: &'a HeadRows,
    /// [M, D]
    picked: Tensor,
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
        placed: &'a Placed<'a>,
        range: Range<usize>,
        head: &'a HeadRows,
        teacher: Option<&Teacher>,
    ) -> Self {
        let picked = y.index_select(0, &part(&placed.index, &range));
        let teacher = teacher.zip(placed.teacher.as_ref()).map(|(teacher, rows)| {
            let rows = part(rows, &range);
            match teacher {
                Teacher::Logits(logits) => logits.flatten(0, 1).index_select(0, &rows),
                Teacher::Hidden(hidden) => linear(&hidden.flatten(0, 1).index_select(0, &rows), &head.weight, None),
            }
        });
        Self { placed, range, head, picked, teacher }
    }

    /// Loss and, if wanted, gradient.
    pub(super) fn run(self, goal: &Goal, wants_gradient: bool) -> Told {
        let labels = part(&self.placed.labels, &self.range).unsqueeze(1);
        let logits = linear(&self.picked, &self.head.weight, None);
        if self.teacher.is_none() && fused::runs_on(&logits) && fused::loss_takes(self.head.weight.size()[0]) {
            return self.at_once(logits, &labels.squeeze_dim(1), goal, wants_gradient);
        }
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
        Told { numerator, weight, entropy, correct, overlap, gradient, index: part(&self.placed.index, &self.range) }
    }

    /// Without a teacher, by our own kernel: entropy, likeliest and q - t in two passes over the logits, in their place. A
    /// slot's weight may hang on the entropies of its block, so it is put to the finished gradient.
    fn at_once(self, logits: Tensor, labels: &Tensor, goal: &Goal, wants_gradient: bool) -> Told {
        let ones = Tensor::ones([logits.size()[0]], (Kind::Float, logits.device()));
        let (entropy, likeliest) = sound(fused::cross_entropy(&logits, labels, &ones));
        let correct = likeliest.eq_tensor(labels);
        let weights = self.weights(&entropy, goal);
        let numerator = (&entropy * &weights).sum(Kind::Float);
        let weight = weights.sum(Kind::Float);
        let gradient = wants_gradient.then(|| {
            let off = logits.matmul(&self.head.weight);
            (off * weights.unsqueeze(1)).to_kind(self.picked.kind())
        });
        Told {
            numerator,
            weight,
            entropy,
            correct,
            overlap: None,
            gradient,
            index: part(&self.placed.index, &self.range),
        }
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
        if goal.objective != Objective::Dpace {
            return part(&self.placed.decay, &self.range);
        }
        // Each slot in its block: the chunk's first block is row 0.
        let index = &self.placed.slots.index[self.range.clone()];
        let first = index.first().map_or(0, |i| i / goal.block * goal.block);
        let blocks = index.last().map_or(0, |i| (i - first) / goal.block + 1);
        let at = part(&self.placed.index, &self.range) - first;
        let whole = |kind| Tensor::zeros([blocks * goal.block], (kind, entropy.device()));
        let shape = [blocks, goal.block];
        let dense = whole(Kind::Float).index_copy(0, &at, entropy).view(shape);
        let live = whole(Kind::Bool).index_fill(0, &at, 1).view(shape);
        dpace(&dense, &live, goal.alpha).view([-1]).index_select(0, &at)
    }
}

fn part(t: &Tensor, range: &Range<usize>) -> Tensor {
    t.narrow(0, range.start as i64, range.len() as i64)
}
