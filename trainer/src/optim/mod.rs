//! Optimizers over float32 masters of the weights, learning-rate schedules, clipping.

mod adamw;
mod fused;
mod gate;
mod muon;
mod schedule;
mod state;

pub use gate::Gate;
pub use schedule::Rates;

use crate::config::{Optimizer as Choice, Train};
use crate::model::kernels::sound;
use adamw::AdamW;
use dflash_torch::optimizer::norm_of_all;
use muon::Muon;
use tch::{Device, Kind, Tensor};

/// Updates weights from their gradients. Masters are float32; the weights that compute are rounded from them.
#[derive(Debug)]
pub struct Optimizer {
    slots: Vec<Slot>,
    settings: Settings,
    /// How many updates there have been: a scalar on the device, since only that knows which steps were skipped.
    updates: Tensor,
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
            // In float32 the weights are their own masters.
            let master = working.detach().to_kind(Kind::Float);
            let rule = match &settings.muon {
                Some(_) if working.dim() == 2 => Rule::Muon(Muon::new(&master)),
                _ => Rule::AdamW(AdamW::new(&master)),
            };
            Slot { name: name.clone(), working: working.shallow_clone(), master, rule }
        };
        let device = weights.first().map_or(Device::Cpu, |(_, w)| w.device());
        let updates = Tensor::zeros([], (Kind::Double, device));
        Self { slots: weights.iter().map(slot).collect(), settings, updates }
    }

    /// The norm of the gradients, and what follows from it for the step after `losses`. Nothing is read back.
    #[must_use]
    pub fn gate(&self, losses: &[Tensor]) -> Gate {
        let _guard = tch::no_grad_guard();
        let squares: Vec<_> = if self.updates.device().is_cuda() {
            let gradients: Vec<_> = self.gradients().collect();
            sound(norm_of_all(&gradients)).iter().map(Tensor::square).collect()
        } else {
            self.gradients().map(|g| g.to_kind(Kind::Float).square().sum(Kind::Float)).collect()
        };
        Gate::new(&squares, losses, self.settings.clip, self.updates.device())
    }

    fn gradients(&self) -> impl Iterator<Item = Tensor> + '_ {
        self.slots.iter().map(|s| s.working.grad()).filter(Tensor::defined)
    }

    /// One step at `factor` of the learning rates; then forgets the gradients. Where the gate found what is no number,
    /// weights, moments and the count of updates stay as they were.
    pub fn step(&mut self, factor: f64, gate: &Gate) {
        let _guard = tch::no_grad_guard();
        self.updates = &self.updates + gate.finite.to_kind(Kind::Double);
        self.step_fused(factor, gate);
        let s = &self.settings;
        let adamw = adamw::Shared::new(s.betas, s.learning_rate * factor, &self.updates, gate);
        let shared = Step { factor, moves: gate.finite.to_kind(Kind::Float), adamw };
        for slot in &mut self.slots {
            let gradient = slot.working.grad();
            if !gradient.defined() {
                continue;
            }
            slot.update(&gate.pass(&gradient), s, &shared);
            slot.working.copy_(&slot.master);
            slot.working.zero_grad();
        }
    }
}

/// What the tensors of a step share.
struct Step {
    factor: f64,
    /// 1, or 0 where the step is skipped.
    moves: Tensor,
    adamw: adamw::Shared,
}

impl Slot {
    fn update(&mut self, gradient: &Tensor, s: &Settings, step: &Step) {
        match (&mut self.rule, &s.muon) {
            (Rule::Muon(rule), Some(m)) => {
                let rate = m.learning_rate * step.factor;
                decay(&mut self.master, rate * m.weight_decay, &step.moves);
                rule.update(&mut self.master, gradient, rate, m, &step.moves);
            }
            (Rule::AdamW(rule), _) => {
                decay(&mut self.master, s.learning_rate * step.factor * s.weight_decay, &step.moves);
                rule.update(&mut self.master, gradient, &step.adamw);
            }
            (Rule::Muon(_), None) => unreachable!("Muon's state exists only with its settings"),
        }
    }
}

fn decay(weight: &mut Tensor, share: f64, moves: &Tensor) {
    if share > 0.0 {
        let _ = weight.g_mul_(&(1.0 - moves.to_kind(Kind::Double) * share));
    }
}
