//! Optimizers over float32 masters of the weights, learning-rate schedules, clipping.

mod adamw;
mod muon;
mod schedule;
mod state;

pub use schedule::factor;

use crate::config::{Optimizer as Choice, Train};
use adamw::AdamW;
use muon::Muon;
use tch::{Kind, Tensor};

/// Updates weights from their gradients. Masters are float32; the weights that compute are rounded from them.
#[derive(Debug)]
pub struct Optimizer {
    slots: Vec<Slot>,
    settings: Settings,
    steps: usize,
}

/// What a step needs besides the gradients.
#[derive(Clone, Debug)]
pub struct Settings {
    /// AdamW's learning rate at factor 1.
    pub learning_rate: f64,
    /// AdamW's betas.
    pub betas: (f64, f64),
    /// AdamW's decoupled weight decay, on every tensor that it updates.
    pub weight_decay: f64,
    /// Muon for matrices; `None` = AdamW for all.
    pub muon: Option<MuonSettings>,
    /// Largest norm of all gradients together; 0 = any.
    pub clip: f64,
}

/// Muon's own settings.
#[derive(Clone, Debug)]
pub struct MuonSettings {
    /// Learning rate at factor 1, before 0.2 · sqrt(longer side).
    pub learning_rate: f64,
    /// Momentum (Nesterov).
    pub momentum: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Newton-Schulz iterations.
    pub iterations: usize,
}

impl From<&Train> for Settings {
    fn from(t: &Train) -> Self {
        let muon = MuonSettings {
            learning_rate: t.muon_learning_rate,
            momentum: t.muon_momentum,
            weight_decay: t.muon_weight_decay,
            iterations: t.muon_iterations,
        };
        Self {
            learning_rate: t.learning_rate,
            betas: (t.beta1, t.beta2),
            weight_decay: t.weight_decay,
            muon: (t.optimizer == Choice::Muon).then_some(muon),
            clip: t.clip,
        }
    }
}

#[derive(Debug)]
struct Slot {
    name: String,
    working: Tensor,
    master: Tensor,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    AdamW(AdamW),
    Muon(Muon),
}

impl Optimizer {
    /// An optimizer over weights; `weights` share memory with the model's.
    #[must_use]
    pub fn new(weights: &[(String, Tensor)], settings: Settings) -> Self {
        let slot = |(name, working): &(String, Tensor)| {
            let master = working.detach().to_kind(Kind::Float);
            let rule = match &settings.muon {
                Some(_) if working.dim() == 2 => Rule::Muon(Muon::new(&master)),
                _ => Rule::AdamW(AdamW::new(&master)),
            };
            // In float32 the weights are their own masters.
            Slot { name: name.clone(), working: working.shallow_clone(), master, rule }
        };
        Self { slots: weights.iter().map(slot).collect(), settings, steps: 0 }
    }

    /// Scales the gradients down to the largest norm allowed; returns the norm before, as a tensor: reading it waits.
    pub fn clip(&self) -> Tensor {
        let _guard = tch::no_grad_guard();
        let squares: Vec<_> = self.gradients().map(|g| g.to_kind(Kind::Float).square().sum(Kind::Float)).collect();
        let norm = Tensor::stack(&squares, 0).sum(Kind::Float).sqrt();
        if self.settings.clip > 0.0 {
            let scale = (self.settings.clip / (&norm + 1e-6)).clamp_max(1.0);
            for mut gradient in self.gradients() {
                let _ = gradient.g_mul_(&scale.to_kind(gradient.kind()));
            }
        }
        norm
    }

    fn gradients(&self) -> impl Iterator<Item = Tensor> + '_ {
        self.slots.iter().map(|s| s.working.grad()).filter(Tensor::defined)
    }

    /// One step at `factor` of the learning rates; then forgets the gradients.
    pub fn step(&mut self, factor: f64) {
        let _guard = tch::no_grad_guard();
        self.steps += 1;
        for slot in &mut self.slots {
            let gradient = slot.working.grad();
            if !gradient.defined() {
                continue;
            }
            slot.update(&gradient.to_kind(Kind::Float), &self.settings, factor, self.steps);
            slot.working.copy_(&slot.master);
            slot.working.zero_grad();
        }
    }
}

impl Slot {
    fn update(&mut self, gradient: &Tensor, s: &Settings, factor: f64, step: usize) {
        match (&mut self.rule, &s.muon) {
            (Rule::Muon(rule), Some(m)) => {
                let rate = m.learning_rate * factor;
                decay(&mut self.master, rate * m.weight_decay);
                rule.update(&mut self.master, gradient, rate, m);
            }
            (Rule::AdamW(rule), _) => {
                let rate = s.learning_rate * factor;
                decay(&mut self.master, rate * s.weight_decay);
                rule.update(&mut self.master, gradient, rate, s.betas, step);
            }
            (Rule::Muon(_), None) => unreachable!("Muon's state exists only with its settings"),
        }
    }
}

fn decay(weight: &mut Tensor, share: f64) {
    if share > 0.0 {
        let _ = weight.g_mul_scalar_(1.0 - share);
    }
}
