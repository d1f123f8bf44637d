//! `[random]`: a training of nothing, to measure.

use super::section::section;

section! {
    /// Random weights and random texts instead of a model and data, for measuring: nothing is learnt, and neither checkpoints
    /// nor a drafter are kept.
    Random {
        /// The shape of the target: `qwen3-8b`, `qwen3-0.6b`, or `tiny` for tests. Empty: `[model]` and `[data]` say what is
        /// trained on. `drafter.mask_token_id` then is the first id that no text has.
        target: String = String::new(),
        /// Tokens of each text, all supervised.
        tokens: usize = 3072,
        /// Texts.
        samples: usize = 64,
    }
}

impl Random {
    /// Whether weights and texts are random.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.target.is_empty()
    }
}
