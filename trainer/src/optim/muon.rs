//! Muon: momentum, made orthogonal by Newton-Schulz iterations (torch.optim.Muon with `match_rms_adamw`).

use super::MuonSettings;
use tch::{Kind, Tensor};

const COEFFICIENTS: (f64, f64, f64) = (3.4445, -4.7750, 2.0315);
const EPS: f64 = 1e-7;

/// State of one matrix.
#[derive(Debug)]
pub(super) struct Muon {
    pub(super) momentum: Tensor,
}

impl Muon {
    pub(super) fn new(weight: &Tensor) -> Self {
        Self { momentum: weight.zeros_like() }
    }

    pub(super) fn update(&mut self, weight: &mut Tensor, gradient: &Tensor, rate: f64, s: &MuonSettings) {
        let _ = self.momentum.lerp_(gradient, 1.0 - s.momentum);
        let update = gradient.lerp(&self.momentum, s.momentum); // Nesterov
        let longer = weight.size().into_iter().max().unwrap_or(1) as f64;
        let step = rate * 0.2 * longer.sqrt();
        let _ = weight.g_sub_(&(orthogonal(&update, s.iterations).to_kind(Kind::Float) * step));
    }
}

/// A matrix with the same singular vectors and singular values near one. In bfloat16: the iteration bears it.
fn orthogonal(matrix: &Tensor, iterations: usize) -> Tensor {
    let (a, b, c) = COEFFICIENTS;
    let [rows, columns] = matrix.size()[..] else { unreachable!("Muon updates matrices") };
    let tall = rows > columns;
    let x = matrix.to_kind(Kind::BFloat16);
    // The short side in front: its Gram matrix is the smaller one.
    let x = if tall { x.tr() } else { x };
    let mut x = &x / x.norm().clamp_min(EPS);
    for _ in 0..iterations {
        let gram = x.matmul(&x.tr());
        let polynomial = &gram * b + gram.matmul(&gram) * c;
        x = &x * a + polynomial.matmul(&x);
    }
    if tall { x.tr() } else { x }
}
