//! AdamW's moments and update (the decay is decoupled and done by the caller).

use super::gate::Gate;
use tch::{Kind, Tensor};

pub(super) const EPS: f64 = 1e-8;

/// State of one tensor.
#[derive(Debug)]
pub(super) struct AdamW {
    pub(super) first: Tensor,
    pub(super) second: Tensor,
}

/// What all tensors of a step share, as scalars on the device: the device alone knows how many updates there have been.
pub(super) struct Shared {
    /// 1 - beta, or 0 where the step is skipped.
    share: [Tensor; 2],
    /// Rate over the first moment's bias correction, or 0.
    rate: Tensor,
    /// Root of the second moment's bias correction.
    root: Tensor,
}

impl Shared {
    /// `updates`: how many there will have been after this one; `rate`: the learning rate.
    pub(super) fn new(betas: (f64, f64), rate: f64, updates: &Tensor, gate: &Gate) -> Self {
        let count = updates.clamp_min(1.0);
        let correction = |beta: f64| -> Tensor { 1.0 - (&count * beta.ln()).exp() };
        let moves = gate.finite.to_kind(Kind::Double);
        Self {
            share: [&moves * (1.0 - betas.0), &moves * (1.0 - betas.1)],
            rate: moves * rate / correction(betas.0),
            root: correction(betas.1).sqrt(),
        }
    }
}

impl AdamW {
    pub(super) fn new(weight: &Tensor) -> Self {
        Self { first: weight.zeros_like(), second: weight.zeros_like() }
    }

    pub(super) fn update(&mut self, weight: &mut Tensor, gradient: &Tensor, s: &Shared) {
        let _ = self.first.lerp_tensor_(gradient, &s.share[0].to_kind(Kind::Float));
        let _ = self.second.g_mul_(&(1.0 - &s.share[1]));
        let _ = self.second.g_add_(&(gradient.square() * &s.share[1]));
        // eps stands outside the root, after the bias correction (torch's order).
        let divisor = self.second.sqrt() / &s.root + EPS;
        let _ = weight.g_sub_(&(&self.first / divisor * &s.rate));
    }
}
