//! Whether a given drafter has the shape that a configuration asks for.

use super::DrafterConfig;

impl DrafterConfig {
    /// Every field in which a given drafter (`self`) is not what the configuration asks for, with both values; empty: none.
    ///
    /// What only says how random weights are drawn, or what the target already fixes, does not count.
    #[must_use]
    pub fn differences(&self, asked: &Self) -> String {
        let numbers = [
            ("layers", self.layers, asked.layers),
            ("block_size", self.block_size, asked.block_size),
            ("mask_token_id", self.mask_token_id, asked.mask_token_id),
            ("hidden size", self.hidden_size, asked.hidden_size),
            ("vocabulary", self.vocab_size, asked.vocab_size),
        ];
        let mut found: Vec<String> = numbers
            .iter()
            .filter(|(_, has, wants)| has != wants)
            .map(|(name, has, wants)| format!("{name} is {has} there and {wants} in the configuration"))
            .collect();
        if self.target_layer_ids != asked.target_layer_ids {
            let (has, wants) = (&self.target_layer_ids, &asked.target_layer_ids);
            found.push(format!("target_layer_ids is {has:?} there and {wants:?} in the configuration"));
        }
        found.join("; ")
    }
}
