//! AdamW's moments and update (the decay is decoupled and done by the caller).

use tch::Tensor;

const EPS: f64 = 1e-8;

/// State of one tensor.
#[derive(Debug)]
pub(super) struct AdamW {
    pub(super) first: Tensor,
    pub(super) second: Tensor,
}

impl AdamW {
    pub(super) fn new(weight: &Tensor) -> Self {
        Self { first: weight.zeros_like(), second: weight.zeros_like() }
    }

    /// Step number `step`, from 1.
    pub(super) fn update(&mut self, weight: &mut Tensor, gradient: &Tensor, rate: f64, betas: (f64, f64), step: usize) {
        let (beta1, beta2) = betas;
        let _ = self.first.lerp_(gradient, 1.0 - beta1);
        let _ = self.second.g_mul_scalar_(beta2);
        let _ = self.second.g_add_(&(gradient.square() * (1.0 - beta2)));
        let step = i32::try_from(step).unwrap_or(i32::MAX);
        let correction1 = 1.0 - beta1.powi(step);
        let correction2 = 1.0 - beta2.powi(step);
        // eps stands outside the root, after the bias correction (torch's order).
        let divisor = self.second.sqrt() / correction2.sqrt() + EPS;
        let _ = weight.g_sub_(&(&self.first / divisor * (rate / correction1)));
    }
}
