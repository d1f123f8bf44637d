//! Draft-verify: the drafter proposes a block, one pass of the target checks it, the agreed prefix and the target's own
//! next token are committed. The output is the target's own: its greedy one, or, with a temperature, one that is drawn
//! from its distribution.

use super::choose::{Chooser, Draft, Verdict};
use crate::drafter::{ContextCache, DFlashDrafter};
use crate::model::attention::causal_mask;
use crate::model::linear;
use crate::target::{Features, KvCache, Target};
use tch::{Kind, Tensor};

/// How to decode.
#[derive(Clone, Debug, Default)]
pub struct DecodeOptions {
    /// Longest answer, tokens.
    pub max_new_tokens: usize,
    /// Tokens that end an answer.
    pub stop_ids: Vec<i64>,
    /// Tokens of a block; 0 = the drafter's. 1 is plain decoding through the same loop.
    pub block_size: usize,
    /// A control: the drafter sees zeros instead of the target's hidden states.
    pub zero_features: bool,
    /// 0: greedy. Else tokens are drawn, from logits divided by it, by target and drafter alike.
    pub temperature: f64,
    /// Seed of what is drawn.
    pub seed: u64,
}

/// What came out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decoded {
    /// Tokens after the prompt; the first stop token is kept, nothing after it.
    pub ids: Vec<i64>,
    /// Accepted drafted tokens + 1, of each verification; not cut by the end of the answer.
    pub acceptance_lengths: Vec<usize>,
}

/// Answers one prompt (not empty).
#[must_use]
pub fn decode(target: &Target, drafter: &DFlashDrafter, prompt: &[i64], options: &DecodeOptions) -> Decoded {
    let _guard = tch::no_grad_guard();
    let mut state = State::start(target, drafter, prompt, options);
    let end = prompt.len() + options.max_new_tokens;
    let mut lengths = Vec::new();
    // Stop tokens are looked for after a check: one check is always made, as in z-lab's loop.
    while state.ids.len() - 1 < end && (lengths.is_empty() || !state.stopped(prompt.len())) {
        lengths.push(state.verify_one_block());
    }
    Decoded { ids: cut(&state.ids[prompt.len()..], options), acceptance_lengths: lengths }
}

fn cut(ids: &[i64], options: &DecodeOptions) -> Vec<i64> {
    let ids = &ids[..ids.len().min(options.max_new_tokens)];
    let stop = ids.iter().position(|id| options.stop_ids.contains(id));
    ids[..stop.map_or(ids.len(), |i| i + 1)].to_vec()
}

struct State<'a> {
    target: &'a Target,
    drafter: &'a DFlashDrafter,
    options: &'a DecodeOptions,
    block: i64,
    /// Prompt and committed tokens; the last one has no hidden state yet.
    ids: Vec<i64>,
    cache: KvCache,
    context: ContextCache,
    chooser: Chooser,
}

impl<'a> State<'a> {
    fn start(target: &'a Target, drafter: &'a DFlashDrafter, prompt: &[i64], options: &'a DecodeOptions) -> Self {
        let block = if options.block_size == 0 { drafter.config.block_size } else { options.block_size as i64 };
        let capacity = (prompt.len() + options.max_new_tokens) as i64 + 2 * block;
        let mut cache = target.cache(1, prompt.len() as i64);
        let context = ContextCache::new(drafter, capacity, target.kind(), target.device());
        let input = Tensor::from_slice(prompt).to_device(target.device()).unsqueeze(0);
        let features = target.prefill(&input, &mut cache, &drafter.config.target_layer_ids);
        let mut chooser = Chooser::new(options.temperature, options.seed);
        let first = chooser.choose(&target.logits(&features.last.narrow(1, prompt.len() as i64 - 1, 1)));
        let mut state = Self { target, drafter, options, block, ids: prompt.to_vec(), cache, context, chooser };
        state.ids.push(first.ids.first().copied().unwrap_or(0));
        state.see(&features, prompt.len() as i64);
        state
    }

    /// Hands the first `rows` of the tapped hidden states to the drafter.
    fn see(&mut self, features: &Features, rows: i64) {
        let taps = Tensor::cat(&features.taps, -1).narrow(1, 0, rows);
        let taps = if self.options.zero_features { taps.zeros_like() } else { taps };
        self.context.extend(self.drafter, &taps);
    }

    fn stopped(&self, prompt: usize) -> bool {
        self.ids[prompt..].iter().any(|id| self.options.stop_ids.contains(id))
    }

    fn verify_one_block(&mut self) -> usize {
        let start = self.ids.len() as i64 - 1;
        let draft = self.draft();
        let mut block = vec![self.ids[self.ids.len() - 1]];
        block.extend(&draft.ids);
        let device = self.target.device();
        let input = Tensor::from_slice(&block).to_device(device).unsqueeze(0);
        let positions = Tensor::arange_start(start, start + self.block, (Kind::Int64, device));
        self.cache.reserve(self.block);
        let mask = causal_mask(start, self.block, self.cache.capacity(), self.target.kind(), device);
        let taps = &self.drafter.config.target_layer_ids;
        let features = self.target.step(&input, &positions, &mask, &mut self.cache, taps);
        let Verdict { accepted, next } = self.chooser.verify(&draft, &self.target.logits(&features.last));
        self.ids.extend(&draft.ids[..accepted]);
        self.ids.push(next);
        self.cache.crop(start + accepted as i64 + 1);
        self.see(&features, accepted as i64 + 1);
        accepted + 1
    }

    /// The drafter's tokens for slots 1..B.
    fn draft(&mut self) -> Draft {
        let mut ids = vec![self.drafter.config.mask_token_id; self.block as usize];
        ids[0] = self.ids[self.ids.len() - 1];
        if self.block == 1 {
            return Draft::default();
        }
        let ids = Tensor::from_slice(&ids).to_device(self.target.device()).unsqueeze(0);
        let embedded = Tensor::embedding(&self.target.embedding, &ids, -1, false, false);
        let y = self.context.block(self.drafter, &embedded).narrow(1, 1, self.block - 1);
        self.chooser.choose(&linear(&y, &self.target.head, None))
    }
}
