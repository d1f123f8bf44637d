//! An optimizer's state by name, to be kept in a checkpoint and taken up again.

use super::{Optimizer, Rule};
use tch::Tensor;

const UPDATES: &str = "optimizer.updates";

impl Optimizer {
    /// Everything that the next step depends on, by name; the tensors share memory with the optimizer's: copy what must
    /// not change.
    #[must_use]
    pub fn state(&self) -> Vec<(String, Tensor)> {
        let mut state = Vec::new();
        for slot in &self.slots {
            let mut put = |part: &str, t: &Tensor| state.push((format!("{}.{part}", slot.name), t.shallow_clone()));
            put("master", &slot.master);
            match &slot.rule {
                Rule::AdamW(rule) => {
                    put("first", &rule.first);
                    put("second", &rule.second);
                }
                Rule::Muon(rule) => put("momentum", &rule.momentum),
            }
        }
        state.push((UPDATES.to_owned(), self.updates.shallow_clone()));
        state
    }

    /// Takes up a state: the masters, from which the weights are rounded anew, the moments and the count of updates.
    ///
    /// # Errors
    /// The name of a tensor that `state` lacks or that has another shape; nothing has changed then.
    pub fn restore(&mut self, mut state: impl FnMut(&str) -> Option<Tensor>) -> Result<(), String> {
        let own = self.state();
        let found: Result<Vec<Tensor>, String> = own
            .iter()
            .map(|(name, t)| state(name).filter(|found| found.size() == t.size()).ok_or_else(|| name.clone()))
            .collect();
        let found = found?;
        let _guard = tch::no_grad_guard();
        for ((_, own), found) in own.iter().zip(&found) {
            own.shallow_clone().copy_(found);
        }
        for slot in &mut self.slots {
            slot.working.copy_(&slot.master);
        }
        Ok(())
    }
}
