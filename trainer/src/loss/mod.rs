//! What the drafter is trained for, at the supervised slots, and what it tells about them.
//!
//! The head is frozen, so a slot's gradient is known as soon as its logits are: (q - t) · head, with q what the drafter
//! says and t what it should say. Logits exist for one chunk of blocks at a time, and are never computed twice.

mod chunk;
mod figures;
mod weights;

pub use figures::{Figures, simulated_acceptance};
pub use weights::{decay, default_gamma};

use crate::config::{Objective, Reduction, Train};
use crate::drafter::Slots;
use chunk::{Chunk, Chunks, Placed};
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

/// The head's rows that take part in the loss.
#[derive(Debug)]
pub struct HeadRows {
    /// [C, D]
    pub weight: Tensor,
    /// Row of each token id, -1 where it has none; `None` = row i is token i.
    pub row_of: Option<Arc<[i64]>>,
}

/// What the target says about the same tokens, for `kl`.
#[derive(Debug)]
pub enum Teacher {
    /// Its logits [b, S, C] over the rows of the head.
    Logits(Tensor),
    /// What its head reads, [b, S, D]: its last hidden states after its final norm.
    Hidden(Tensor),
}

/// What is trained for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Goal {
    /// The loss.
    pub objective: Objective,
    /// Decay along a block.
    pub gamma: f64,
    /// D-PACE's alpha.
    pub alpha: f64,
    /// By what the sum is divided.
    pub reduction: Reduction,
    /// B
    pub block: i64,
    /// Blocks whose logits exist at the same time; 0 = all.
    pub chunk_blocks: usize,
}

impl Goal {
    /// What the settings ask for, for blocks of `block` tokens.
    #[must_use]
    pub fn new(settings: &Train, block: i64) -> Self {
        Self {
            objective: settings.loss,
            gamma: if settings.gamma == 0.0 { default_gamma(block) } else { settings.gamma },
            alpha: settings.dpace_alpha,
            reduction: settings.reduction,
            block,
            chunk_blocks: settings.loss_chunk_blocks,
        }
    }

    /// What the sum is divided by, as far as the host knows it; else the number of slots.
    fn denominator(&self, slots: &Slots, texts: usize) -> f64 {
        match (self.reduction, self.objective) {
            (Reduction::Rows, _) | (Reduction::Auto, Objective::Dpace) => texts as f64,
            (Reduction::SupervisedMean, _) | (Reduction::WeightedMean, Objective::Dpace) => slots.len() as f64,
            _ => slots.slot.iter().map(|&k| f64::from(decay(k, self.gamma) as f32)).sum(),
        }
    }

    /// Decayed cross-entropy, weighted mean, all at once.
    #[must_use]
    pub fn cross_entropy(gamma: f64, block: i64) -> Self {
        let (objective, reduction) = (Objective::CrossEntropy, Reduction::Auto);
        Self { objective, gamma, alpha: 0.5, reduction, block, chunk_blocks: 0 }
    }
}

/// A loss with the sums that metrics are made of.
#[derive(Debug)]
pub struct Loss {
    /// The loss; its gradient is the one that trains.
    pub mean: Tensor,
    /// The loss times `denominator`, for means over several steps.
    pub numerator: Tensor,
    /// What it was divided by; where only the device knows that, the number of supervised slots.
    pub denominator: f64,
    /// What it was divided by, where only the device knows that.
    pub divisor: Option<Tensor>,
    /// Sums over slots and blocks.
    pub figures: Figures,
}

/// The loss of drafter outputs y [b, N·B, D] (after the final norm) at the supervised slots of `texts` texts; `teacher` is
/// needed for `kl` alone.
///
/// Only those slots go through the head. With no slot at all the loss is zero, and so is its gradient.
#[must_use]
pub fn evaluate(
    y: &Tensor,
    slots: &Slots,
    head: &HeadRows,
    teacher: Option<&Teacher>,
    goal: &Goal,
    texts: usize,
) -> Loss {
    let flat = y.detach().flatten(0, 1);
    let mut sums = Sums::new(y.device());
    let mut gradient = Tensor::zeros_like(&flat);
    let placed = Placed::new(slots, head, goal.gamma, teacher.is_some(), y.device());
    for range in Chunks::new(slots, goal) {
        let chunk = Chunk::new(&flat, &placed, range, head, teacher);
        let told = tch::no_grad(|| chunk.run(goal, y.requires_grad()));
        if let Some(g) = &told.gradient {
            let _ = gradient.index_copy_(0, &told.index, g);
        }
        sums.add(told);
    }
    let figures = Figures::new(&sums, &placed.index, goal.block, flat.size()[0]);
    let denominator = goal.denominator(slots, texts);
    let by = match (goal.reduction, goal.objective) {
        // Without a slot the sum is zero, whatever divides it.
        _ if slots.is_empty() => sums.weight.ones_like(),
        (Reduction::WeightedMean, Objective::Dpace) => sums.weight.shallow_clone(),
        _ => Tensor::full([], denominator, (Kind::Float, y.device())),
    };
    let value = &sums.numerator / &by;
    let numerator = &value * denominator;
    let mean = with_gradient(y, &gradient, &by, &value);
    let counted = goal.reduction == Reduction::WeightedMean && goal.objective == Objective::Dpace && !slots.is_empty();
    Loss { mean, numerator, denominator, divisor: counted.then_some(by), figures }
}

/// A scalar of the given value, whose gradient with regard to y is `gradient / by`.
fn with_gradient(y: &Tensor, gradient: &Tensor, by: &Tensor, value: &Tensor) -> Tensor {
    if !y.requires_grad() {
        return value.shallow_clone();
    }
    // A loss that is no number makes its gradient none: whoever adds gradients up must see it.
    let by = by + value * 0.0;
    let gradient = (gradient / by).to_kind(y.kind()).view_as(y);
    // The product's value means nothing, and is taken away again: only its gradient is wanted.
    let product = (y * gradient).sum(Kind::Float);
    value + (&product - product.detach())
}

/// Sums over the chunks, still on the device.
struct Sums {
    numerator: Tensor,
    weight: Tensor,
    entropies: Vec<Tensor>,
    correct: Vec<Tensor>,
    overlaps: Vec<Tensor>,
    device: Device,
}

impl Sums {
    fn new(device: Device) -> Self {
        let zero = || Tensor::zeros([], (Kind::Float, device));
        let (entropies, correct, overlaps) = (Vec::new(), Vec::new(), Vec::new());
        Self { numerator: zero(), weight: zero(), entropies, correct, overlaps, device }
    }

    fn add(&mut self, told: chunk::Told) {
        self.numerator = &self.numerator + told.numerator;
        self.weight = &self.weight + told.weight;
        self.entropies.push(told.entropy);
        self.correct.push(told.correct);
        self.overlaps.extend(told.overlap);
    }

    fn joined(&self, parts: &[Tensor], kind: Kind) -> Tensor {
        if parts.is_empty() { Tensor::zeros([0], (kind, self.device)) } else { Tensor::cat(parts, 0) }
    }

    fn correct(&self) -> Tensor {
        self.joined(&self.correct, Kind::Bool)
    }
}
