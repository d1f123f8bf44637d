//! AdamW's step over all weights of a GPU at once.

use super::adamw::EPS;
use super::gate::Gate;
use super::{Optimizer, Rule, Slot};
use crate::model::kernels::sound;
use dflash_torch::optimizer::{AdamWStep, AdamWWeight, OnDevice, adamw, forget_gradient};
use tch::Tensor;

impl Optimizer {
    /// Updates the weights that AdamW has on a GPU, and forgets their gradients: who comes later finds none.
    pub(super) fn step_fused(&mut self, factor: f64, gate: &Gate) {
        if !self.updates.device().is_cuda() {
            return;
        }
        let found: Vec<(&Slot, Tensor)> =
            self.slots.iter().map(|slot| (slot, slot.working.grad())).filter(|(_, g)| g.defined()).collect();
        let weights: Vec<_> = found.iter().filter_map(|(slot, gradient)| of(slot, gradient)).collect();
        let s = &self.settings;
        let step = AdamWStep { rate: s.learning_rate * factor, betas: s.betas, eps: EPS, weight_decay: s.weight_decay };
        // The count is 0 only while nothing was ever updated, and then nothing is now.
        let count = self.updates.clamp_min(1.0);
        let scale = gate.scale.where_self(&gate.finite, &gate.scale.ones_like());
        sound(adamw(&weights, &step, OnDevice { scale: &scale, finite: &gate.finite, step: &count }));
        drop(weights);
        drop(found);
        for slot in &mut self.slots {
            if matches!(slot.rule, Rule::AdamW(_)) {
                sound(forget_gradient(&mut slot.working));
            }
        }
    }
}

fn of<'a>(slot: &'a Slot, gradient: &'a Tensor) -> Option<AdamWWeight<'a>> {
    let Rule::AdamW(rule) = &slot.rule else { return None };
    let (first, second) = (&rule.first, &rule.second);
    Some(AdamWWeight { master: &slot.master, first, second, gradient, working: &slot.working })
}
