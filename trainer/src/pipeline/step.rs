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
    /// Its optimizer.
    pub optimizer: Optimizer,
    settings: Train,
    embedding: Tensor,
    head: Tensor,
    candidates: Option<Candidates>,
    gamma: f64,
    seed: u64,
    rng: StdRng,
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
            rng: StdRng::seed_from_u64(seed),
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

    /// Learns from `taps`, `[b, S, n·D]` on any device: the hidden states of `rows`. `step` counts from 0;
    /// what is random depends on it and the seed alone.
    pub fn run(&mut self, taps: &Tensor, rows: &[Row<'_>], step: usize) -> Stepped {
        let stream = self.drafter.stream;
        self.rng = StdRng::seed_from_u64(mixed(self.seed, step as u64));
        let taps = {
            let _span = span!("drafter.upload", &stream);
            taps.to_device(self.embedding.device())
        };
        let blocks = {
            let _span = span!("drafter.anchors", &stream);
            self.draw(rows)
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
        let loss = self.loss(&y, &blocks);
        {
            let _span = span!("drafter.backward", &stream);
            loss.mean.backward();
        }
        let norm = {
            let _span = span!("drafter.clip", &stream);
            self.optimizer.clip()
        };
        {
            let _span = span!("drafter.step", &stream);
            self.optimizer.step(self.rate_factor(step));
        }
        Stepped { loss, slots: blocks.slots, norm }
    }

    /// What the schedule makes of the learning rate at a step, counted from 0.
    pub fn rate_factor(&self, step: usize) -> f64 {
        let s = &self.settings;
        optim::factor(s.schedule, step, s.steps, s.warmup)
    }

    fn draw(&mut self, rows: &[Row<'_>]) -> Blocks {
        let n = self.settings.anchors;
        let drawn: Vec<_> = rows.iter().map(|row| anchors::draw(row.loss_mask, n, &mut self.rng)).collect();
        let c = &self.drafter.config;
        anchors::layout(rows, &drawn, n, c.block_size as usize, c.mask_token_id, self.embedding.device())
    }

    fn loss(&mut self, y: &Tensor, blocks: &Blocks) -> Loss {
        let _span = span!("drafter.loss", &self.drafter.stream);
        let rows = match &self.candidates {
            Some(candidates) => candidates.draw(&self.head, &mut self.rng),
            None => HeadRows { weight: self.head.shallow_clone(), row_of: None },
        };
        cross_entropy(y, &blocks.slots, &rows, self.gamma)
    }
}

/// One number of two, as far from its neighbours' as any other (splitmix64's finish).
fn mixed(seed: u64, number: u64) -> u64 {
    let mut z = seed ^ number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
