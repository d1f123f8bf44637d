//! One training step of a drafter: what the pipeline does for every batch of hidden states, and benches do for random ones.

use crate::candidates::Candidates;
use crate::config::{NormReading, Objective, Train, Vocabulary};
use crate::device::place;
use crate::drafter::{BlockMask, Blocks, DFlashDrafter, Layout, Noise, Pass, Row, Slots, anchors, layout};
use crate::instrument;
use crate::loss::{self, Goal, HeadRows, Loss, Teacher};
use crate::optim::{Gate, Optimizer, Rates};
use dflash_profiler::span;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tch::{Device, Kind, Tensor};

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
    goal: Goal,
    noise: Noise,
    seed: u64,
    /// Losses of the batches since the last update.
    losses: Vec<Tensor>,
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

/// What a batch did, still on the device.
#[derive(Debug)]
pub struct Stepped {
    /// Its loss.
    pub loss: Loss,
    /// The slots that the loss looked at.
    pub slots: Slots,
    /// What became of the gradients, where the batch was the last of its step.
    pub update: Option<Update>,
}

/// An update of the weights, still on the device.
#[derive(Debug)]
pub struct Update {
    /// Gradient norm before clipping, a scalar.
    pub norm: Tensor,
    /// Bool scalar: losses and norm were numbers. If not, the update was skipped.
    pub finite: Tensor,
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
        Self {
            optimizer: Optimizer::new(drafter.parameters(), settings.into()),
            goal: Goal::new(settings, c.block_size),
            noise: Noise::new(settings, seed),
            settings: settings.clone(),
            losses: Vec::new(),
            seed,
            drafter,
            embedding,
            head,
            candidates,
        }
    }

    /// Where it is.
    #[must_use]
    pub fn device(&self) -> Device {
        self.embedding.device()
    }

    /// Its arithmetic.
    pub(super) fn kind(&self) -> Kind {
        self.embedding.kind()
    }

    /// Where its operators go, from now on and on this thread: spans are timed on that stream.
    pub fn watch_stream(&mut self) {
        self.drafter.stream = instrument::stream(self.embedding.device());
    }

    /// Learns from batch number `batch`, from 0: [`DrafterStep::backward`], and with every `accumulate`-th batch
    /// [`DrafterStep::update`].
    pub fn run(&mut self, taps: &Tensor, rows: &[Row<'_>], batch: usize) -> Stepped {
        let (step, part) = (batch / self.settings.accumulate, batch % self.settings.accumulate);
        let share = Share { step: step as u64, first_row: (part * rows.len()) as u64 };
        let (loss, slots) = self.backward(taps, rows, share);
        let update = (part + 1 == self.settings.accumulate).then(|| self.update(step));
        Stepped { loss, slots, update }
    }

    /// The first half of a step: leaves the gradients of the rows' own mean loss over `accumulate`, for others to reduce.
    /// `taps`: `[b, S, n·D]` on any device, the hidden states of `rows`; for `kl`, `[b, S, (n+1)·D]`, the last D being what
    /// the target's head reads.
    pub fn backward(&mut self, taps: &Tensor, rows: &[Row<'_>], share: Share) -> (Loss, Slots) {
        self.backward_telling(taps, rows, share, &|_| ())
    }

    /// As [`DrafterStep::backward`]; `told` gets the loss before the backward pass begins.
    pub(super) fn backward_telling(
        &mut self,
        taps: &Tensor,
        rows: &[Row<'_>],
        share: Share,
        told: &dyn Fn(&Loss),
    ) -> (Loss, Slots) {
        let stream = self.drafter.stream;
        let taps = {
            let _span = span!("drafter.upload", &stream);
            place(taps, self.embedding.device())
        };
        let blocks = {
            let _span = span!("drafter.anchors", &stream);
            self.draw(rows, share)
        };
        let mask = {
            let _span = span!("drafter.mask", &stream);
            BlockMask::new(&blocks, taps.size()[1], &self.drafter.config, self.drafter.mask, self.embedding.kind())
        };
        let loss = self.learn((&taps, &blocks, mask), rows, share, told);
        self.losses.push(loss.mean.detach());
        (loss, blocks.slots)
    }

    /// A first half whose gradients nobody wants: what it needs of the device is there from then on.
    pub(super) fn rehearse(&mut self, taps: &Tensor, rows: &[Row<'_>]) {
        let _ = self.backward(taps, rows, Share::default());
        self.losses.clear();
        for (_, weight) in self.drafter.parameters() {
            weight.shallow_clone().zero_grad();
        }
    }

    /// Forward, loss, backward.
    fn learn(
        &self,
        (taps, blocks, mask): (&Tensor, &Blocks, BlockMask),
        rows: &[Row<'_>],
        share: Share,
        told: &dyn Fn(&Loss),
    ) -> Loss {
        let stream = self.drafter.stream;
        let (features, teacher) = self.parts(taps);
        let pass = {
            let _span = span!("drafter.forward", &stream);
            let features = self.noise.add(&features, share.step as usize, share.first_row);
            let embedded = Tensor::embedding(&self.embedding, &blocks.ids, -1, false, false);
            Pass::forward(&self.drafter, &features, &embedded, blocks, &mask, self.settings.checkpointing)
        };
        let loss = {
            let _span = span!("drafter.loss", &stream);
            let head = self.head_rows(share.step);
            let texts = rows.iter().map(Row::texts).sum();
            loss::evaluate(&pass.y, &blocks.slots, &head, teacher.as_ref(), &self.goal, texts)
        };
        told(&loss);
        let _span = span!("drafter.backward", &stream);
        pass.backward(&(&loss.mean / self.settings.accumulate as f64));
        // Giving memory back takes its time, which belongs to the stage that needed it last.
        drop((mask, features, teacher));
        loss
    }

    /// The second half of a step, counted from 0: clips the gradients and updates the weights, unless a loss or the norm is
    /// no number.
    pub fn update(&mut self, step: usize) -> Update {
        let stream = self.drafter.stream;
        let gate = {
            let _span = span!("drafter.clip", &stream);
            self.optimizer.gate(&std::mem::take(&mut self.losses))
        };
        if self.settings.norm_reading == NormReading::EachStep {
            let _span = span!("sync.norm");
            let _ = gate.norm.double_value(&[]);
        }
        let _span = span!("drafter.step", &stream);
        self.optimizer.step(self.rate_factor(step), &gate);
        let Gate { norm, finite, .. } = gate;
        Update { norm, finite }
    }

    /// What the schedule makes of the learning rate at a step, counted from 0.
    pub fn rate_factor(&self, step: usize) -> f64 {
        Rates::from(&self.settings).factor(step)
    }

    /// Context features, and what the target's head reads.
    fn parts(&self, taps: &Tensor) -> (Tensor, Option<Teacher>) {
        let width = self.drafter.config.feature_width();
        if self.goal.objective != Objective::Kl {
            return (taps.shallow_clone(), None);
        }
        let last = taps.narrow(-1, width, self.drafter.config.hidden_size);
        (taps.narrow(-1, 0, width), Some(Teacher::Hidden(last)))
    }

    fn draw(&self, rows: &[Row<'_>], share: Share) -> Blocks {
        let (c, s) = (&self.drafter.config, &self.settings);
        let block = c.block_size as usize;
        let draw = |(i, row)| {
            let valid = anchors::valid(row, s.anchor_rule, block);
            anchors::draw(&valid, s.anchors, &mut rng(self.seed, share.step, share.first_row + i as u64))
        };
        let drawn: Vec<_> = (0..).zip(rows).map(draw).collect();
        let most = drawn.iter().map(Vec::len).max().unwrap_or(0).max(1);
        let count = if s.fixed_anchors { s.anchors } else { most };
        let device = self.embedding.device();
        layout(rows, &drawn, &Layout { count, block, mask_id: c.mask_token_id, device })
    }

    fn head_rows(&self, step: u64) -> HeadRows {
        match &self.candidates {
            Some(candidates) => candidates.draw(&self.head, &mut rng(self.seed, step, u64::MAX)),
            None => HeadRows { weight: self.head.shallow_clone(), row_of: None },
        }
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
