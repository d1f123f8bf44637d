//! Whether a step is taken: decided on the device, which nobody waits for.

use tch::{Device, Kind, Tensor};

/// What clipping found out about a step's gradients.
#[derive(Debug)]
pub struct Gate {
    /// Norm of all gradients together, before clipping; a scalar.
    pub norm: Tensor,
    /// By what the gradients are multiplied; a scalar, finite.
    pub scale: Tensor,
    /// Bool scalar: loss and norm are numbers. If not, the step changes nothing.
    pub finite: Tensor,
}

impl Gate {
    /// `clip`: largest norm; 0 = any. `losses`: the step's losses.
    pub(super) fn new(squares: &[Tensor], losses: &[Tensor], clip: f64, device: Device) -> Self {
        let zero = Tensor::zeros([], (Kind::Float, device));
        let norm =
            if squares.is_empty() { zero.shallow_clone() } else { Tensor::stack(squares, 0).sum(Kind::Float).sqrt() };
        let finite = losses.iter().fold(norm.isfinite(), |all, loss| all.logical_and(&loss.detach().isfinite()));
        let scale = if clip > 0.0 { (clip / (&norm + 1e-6)).clamp_max(1.0) } else { norm.ones_like() };
        let scale = scale.where_self(&finite, &zero);
        Self { norm, scale, finite }
    }

    /// A gradient in float32, clipped; zeros where the step is skipped.
    pub(super) fn pass(&self, gradient: &Tensor) -> Tensor {
        (gradient.to_kind(Kind::Float) * &self.scale).where_scalarother(&self.finite, 0.0)
    }
}
