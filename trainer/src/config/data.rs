//! `[data]`: texts to train on, and how they are made.

use super::section::section;
use super::{DocumentIds, Regenerate, Supervise};
use std::path::PathBuf;

section! {
    /// Prompts, and the shards that `dflash prepare` makes of them.
    Data {
        /// JSONL file of training rows: conversations (`conversations`, `messages`, or ShareGPT), plain text (`text`), or
        /// token ids (`input_ids`, `loss_mask`).
        prompts: PathBuf = PathBuf::new(),
        /// Only the first so many training prompts; 0 = all.
        prompts_limit: usize = 0,
        /// JSONL file of held-out prompts for the evaluation; never trained on.
        heldout: PathBuf = PathBuf::new(),
        /// Folder of the tokenised shards; made by `dflash prepare`, reused while nothing that made it changed.
        shards: PathBuf = PathBuf::new(),
        /// Longest answer that the target may give to a training prompt, tokens.
        /// Source: the paper's evaluation.
        max_new_tokens: usize = 2048,
        /// Prompts longer than this are left out, tokens.
        max_prompt_tokens: usize = 1024,
        /// Which answers the target writes: `missing`, of conversations that end with the user; `all`, each turn anew, so
        /// that the drafter learns from what the target itself says.
        regenerate: Regenerate = Regenerate::Missing,
        /// Temperature at which the target answers; 0 = always its likeliest token.
        /// Source: the trainers: 0, or 0.7 to 0.8.
        temperature: f64 = 0.0,
        /// Which answers of a conversation the loss sees: `all`, or `last_turn`.
        /// Source: SpecForge.
        supervise: Supervise = Supervise::All,
        /// Prompts answered at the same time.
        generate_batch: usize = 32,
        /// Samples with fewer supervised tokens are left out.
        /// Source: TorchSpec: 2 × block size.
        min_loss_tokens: usize = 32,
        /// Longer samples are cut, tokens.
        /// Source: the paper.
        max_length: usize = 3072,
        /// Several samples share a row of at most so many tokens, so that little of a batch is padding; each is read and learnt
        /// as it would be alone, but `train.anchors` are drawn for the row (speculators: 8192). 0 = a row a sample.
        /// Source: SpecForge; speculators packs rows of 8192.
        pack: usize = 0,
        /// How packed samples are told apart: `fast`, or `reference`, token by token. The result is the same.
        document_ids: DocumentIds = DocumentIds::Fast,
    }
}
