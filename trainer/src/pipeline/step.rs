//! One training step of a drafter: what the pipeline does for every batch of hidden states, and benches do for random ones.

use crate::candidates::Candidates;
use crate::config::{Train, Vocabulary};
use crate::drafter::anchors::{self, Blocks, Row, Slots};
use crate::drafter::{BlockMask, DFlashDrafter};
use crate::instrument;
use crate::loss::{HeadRows, Loss, cross_entropy, default_gamma};
use crate::optim::{self, Optimizer};
use dflash_profiler::span;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tch::Tensor;

/// A drafter with all that it learns with.
pub struct DrafterStep {
    /// The drafter.
    pub drafter: DFlashDrafter,
    settings: Train,
    optimizer: Optimizer,
    embedding: Tensor,
    head: Tensor,
    candidates: Option<Candidates>,
    gamma: f64,
    seed: u64,
}

/// Which rows of which step are learnt from. What is drawn for a row depends on this and the seed alone: several drafters
/// that share a step's rows draw what one drafter would.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The step, from 0.
    pub step: u64,
    /// Number of the first row among all of the step's.
    pub first_row: u64,
}

/// What a step did, still on the device.
#[derive(Debug)]
pub struct Stepped {
    /// Its loss.
    pub loss: Loss,
    /// The slots that the loss looked at.
    pub slots: Slots,
    /// Gradient norm before clipping, a scalar.
    pub norm: Tensor,
}

impl DrafterStep {
    /// `embedding` and `head` are the target's, `[V, D]`, on the drafter's device; `seen` are the ids of the training
    /// texts, from which candidates are made where the settings ask for them.
    pub fn new(
        settings: &Train,
        drafter: DFlashDrafter,
        (embedding, head): (Tensor, Tensor),
        seen: impl Iterator<Item = i64>,
        seed: u64,
    ) -> Self {
        drafter.require_gradients();
        let c = &drafter.config;
        let candidates = (settings.vocabulary == Vocabulary::Candidates)
            .then(|| Candidates::new(c.vocab_size, settings.candidate_low, seen, settings.candidate_random));
        let gamma = if settings.gamma == 0.0 { default_gamma(c.block_size) } else { settings.gamma };
        Self {
            optimizer: Optimizer::new(drafter.parameters(), settings.into()),
            settings: settings.clone(),
            seed,
            drafter,
            embedding,
            head,
            candidates,
            gamma,
        }
    }

    /// Where its operators go, from now on and on this thread: spans are timed on that stream.
    pub fn watch_stream(&mut self) {
        self.drafter.stream = instrument::stream(self.embedding.device());
    }

    /// A whole step of one batch from `taps`, `[b, S, n·D]` on any device: the hidden states of `rows`. `step` counts from 0.
    pub fn run(&mut self, taps: &Tensor, rows: &[Row<'_>], step: usize) -> Stepped {
        let (loss, slots) = self.backward(taps, rows, Share { step: step as u64, first_row: 0 });
        Stepped { loss, slots, norm: self.update(step) }
    }

    /// The first half of a step: adds the gradients of the rows' own mean loss over `accumulate`, for others to reduce.
    pub fn backward(&mut self, taps: &Tensor, rows: &[Row<'_>], share: Share) -> (Loss, Slots) {
        let stream = self.drafter.stream;
        let taps = {
            let _span = span!("drafter.upload", &stream);
            taps.to_device(self.embedding.device())
        };
        let blocks = {
            let _span = span!("drafter.anchors", &stream);
            self.draw(rows, share)
        };
        let mask = {
            let _span = span!("drafter.mask", &stream);
            let (context, block) = (taps.size()[1], self.drafter.config.block_size);
            BlockMask::new(&blocks.anchors, &blocks.keep, context, block, taps.device())
        };
        let y = {
            let _span = span!("drafter.forward", &stream);
            let embedded = Tensor::embedding(&self.embedding, &blocks.ids, -1, false, false);
            self.drafter.forward(&taps, &embedded, &blocks.positions, &mask)
        };
        let loss = self.loss(&y, &blocks, share.step);
        {
            let _span = span!("drafter.backward", &stream);
            (&loss.mean / self.settings.accumulate as f64).backward();
        }
        (loss, blocks.slots)
    }

    /// The second half: clips the gradients, updates the weights; returns the norm before clipping, a scalar.
    pub fn update(&mut self, step: usize) -> Tensor {
        let stream = self.drafter.stream;
        let norm = {
            let _span = span!("drafter.clip", &stream);
            self.optimizer.clip()
        };
        let _span = span!("drafter.step", &stream);
        self.optimizer.step(self.rate_factor(step));
        norm
    }

    /// What the schedule makes of the learning rate at a step, counted from 0.
    pub fn rate_factor(&self, step: usize) -> f64 {
        let s = &self.settings;
        optim::factor(s.schedule, step, s.steps, s.warmup)
    }

    fn draw(&self, rows: &[Row<'_>], share: Share) -> Blocks {
        let most = self.settings.anchors;
        let rng = |row: usize| rng(self.seed, share.step, share.first_row + row as u64);
        let drawn: Vec<_> =
            rows.iter().enumerate().map(|(i, row)| anchors::draw(row.loss_mask, most, &mut rng(i))).collect();
        let n = if self.settings.fixed_anchors { most } else { drawn.iter().map(Vec::len).max().unwrap_or(0).max(1) };
        let c = &self.drafter.config;
        anchors::layout(rows, &drawn, n, c.block_size as usize, c.mask_token_id, self.embedding.device())
    }

    fn loss(&self, y: &Tensor, blocks: &Blocks, step: u64) -> Loss {
        let _span = span!("drafter.loss", &self.drafter.stream);
        let rows = match &self.candidates {
            Some(candidates) => candidates.draw(&self.head, &mut rng(self.seed, step, u64::MAX)),
            None => HeadRows { weight: self.head.shallow_clone(), row_of: None },
        };
        cross_entropy(y, &blocks.slots, &rows, self.gamma)
    }
}

/// Random numbers of one row of one step.
fn rng(seed: u64, step: u64, row: u64) -> StdRng {
    let mut key = [0; 32];
    for (part, value) in key.chunks_exact_mut(8).zip([seed, step, row]) {
        part.copy_from_slice(&value.to_le_bytes());
    }
    StdRng::from_seed(key)
}
