//! `[train]`: what a step draws, loses and follows.

use super::section::section;
use super::{
    AnchorRule, Attention, DecayShape, NoiseKind, NoiseSchedule, NormReading, Objective, Optimizer, Reduction,
    Schedule, Vocabulary,
};

section! {
    /// The training steps.
    Train {
        /// Optimizer steps.
        steps: usize = 1000,
        /// Sequences in a step of one drafter (SpecForge: 4). Several drafters see as many times that in a step.
        /// Source: SpecForge.
        batch: usize = 4,
        /// Anchors drawn in each sequence at each step.
        /// Source: the paper.
        anchors: usize = 512,
        /// Decay of the loss along a block, exp(-(k - 1) / gamma); 0 = the paper's: 7 for block size 16, 5 for 10, 4 for 8.
        /// Source: the paper.
        gamma: f64 = 0.0,
        /// Which positions may be an anchor: `two_supervised` (SpecForge), `whole_block` (TorchSpec, ModelOpt, NeMo) or
        /// `before_last_block` (speculators).
        /// Source: SpecForge.
        anchor_rule: AnchorRule = AnchorRule::TwoSupervised,
        /// A step always has `anchors` blocks a sequence, those that cannot be drawn weighing nothing (TorchSpec), so that
        /// every step has the same shapes; `false`: as many as the batch can fill (SpecForge).
        /// Source: TorchSpec; SpecForge draws as many as there are.
        fixed_anchors: bool = true,
        /// `cross_entropy` (the paper), `dpace`, or `kl`: divergence from the target's own distribution.
        /// Source: the paper.
        loss: Objective = Objective::CrossEntropy,
        /// With `dpace`: its alpha.
        /// Source: D-PACE's paper, stable from 0.3 to 0.7.
        dpace_alpha: f64 = 0.5,
        /// By what the loss's sum is divided: `auto` (SpecForge: `rows` for `dpace`, else `weighted_mean`),
        /// `weighted_mean`, `supervised_mean` (speculators), `rows`.
        /// Source: SpecForge.
        reduction: Reduction = Reduction::Auto,
        /// Blocks whose logits exist at the same time (SpecForge: 128); 0 = all. The result is the same.
        /// Source: SpecForge.
        loss_chunk_blocks: usize = 128,
        /// Noise on the context features: `none` (the paper), `constant`, or `cosine` from `noise_start` to `noise_end`.
        /// Source: the paper.
        noise: NoiseSchedule = NoiseSchedule::None,
        /// `uniform` between -n and n (speculators) or `gaussian`.
        /// Source: speculators.
        noise_kind: NoiseKind = NoiseKind::Uniform,
        /// The noise's n at first.
        /// Source: speculators.
        noise_start: f64 = 0.05,
        /// The noise's n at the end, with `cosine`.
        noise_end: f64 = 0.0,
        /// Batches whose gradients add up to one step (SpecForge: 1); the mean of their losses is what a step follows.
        /// Source: SpecForge.
        accumulate: usize = 1,
        /// Layers are computed again in the backward pass instead of being kept: less memory, more time.
        checkpointing: bool = false,
        /// `full`: cross-entropy over the whole vocabulary (the paper). `candidates`: over the ids of the training
        /// texts, the first `candidate_low` ids and `candidate_random` fresh ones a step: faster on a CPU; drafting
        /// always uses the whole vocabulary.
        /// Source: the paper.
        vocabulary: Vocabulary = Vocabulary::Full,
        /// With `candidates`: the ids below this one are always among them.
        candidate_low: i64 = 2048,
        /// With `candidates`: random others, drawn anew at each step.
        candidate_random: usize = 1024,
        /// `adamw` (the paper), or `muon`: Muon on matrices, AdamW on the rest.
        /// Source: the paper.
        optimizer: Optimizer = Optimizer::Adamw,
        /// AdamW's learning rate.
        /// Source: the paper.
        learning_rate: f64 = 6e-4,
        /// AdamW's first beta.
        /// Source: PyTorch; NeMo has it, too.
        beta1: f64 = 0.9,
        /// AdamW's second beta.
        /// Source: SpecForge; NeMo: 0.95.
        beta2: f64 = 0.999,
        /// AdamW's decoupled weight decay, on every tensor that it updates.
        /// Source: SpecForge.
        weight_decay: f64 = 0.0,
        /// Muon's learning rate, before its factor 0.2 · sqrt(longer side).
        muon_learning_rate: f64 = 6e-3,
        /// Muon's momentum.
        /// Source: torch.optim.Muon, speculators.
        muon_momentum: f64 = 0.95,
        /// Muon's decoupled weight decay (speculators: 0.1).
        /// Source: dflash; speculators: 0.1.
        muon_weight_decay: f64 = 0.0,
        /// Muon's Newton-Schulz iterations.
        /// Source: torch.optim.Muon, speculators.
        muon_iterations: usize = 5,
        /// `cosine` to zero (the paper), `linear`, `wsd` (unchanged, then a decay; TorchSpec) or `constant`.
        /// Source: the paper.
        schedule: Schedule = Schedule::Cosine,
        /// Share of the steps over which the learning rate rises.
        /// Source: the paper.
        warmup: f64 = 0.04,
        /// With `wsd`: share of the steps over which the learning rate falls.
        /// Source: TorchSpec.
        decay: f64 = 0.2,
        /// With `wsd`: shape of the fall, `cosine`, `linear` or `sqrt` (1 - sqrt).
        /// Source: transformers.
        decay_shape: DecayShape = DecayShape::Cosine,
        /// Share of the learning rate at which every schedule but `constant` ends.
        /// Source: the paper; TorchSpec, NeMo: 0.1.
        min_rate: f64 = 0.0,
        /// Gradients are scaled down to this norm over all tensors together; 0 = never.
        /// Source: the paper.
        clip: f64 = 1.0,
        /// What computes attention on GPUs: `own`: our own kernel for the drafter's blocks where it runs, libtorch's choice for
        /// the rest; `auto`: libtorch's choice for all; or one of libtorch's kernels: `cudnn`, `efficient`, `math`, `flash` (it
        /// knows no masks: the drafter's blocks go to `efficient`). What cannot serve is refused before the first step, and
        /// before the first prompt of `dflash prepare` and `dflash eval`. On a CPU there is one way: `own`, `auto` or `math`.
        attention: Attention = Attention::Own,
        /// Whether the gradient's norm is read back with the other figures (`deferred`), or at `each_step`, which waits
        /// for the device.
        norm_reading: NormReading = NormReading::Deferred,
    }
}
