//! The configuration of a run: a TOML file, every key documented where it is declared.
//!
//! Relative paths are relative to the current directory, as the command line's are.

mod check;
mod check_sim;
mod enums;
mod load;
mod markdown;
mod section;
mod set;
mod sim;

pub(crate) use check::{bytes, percent};
pub(crate) use check_sim::{Planted, planted};
pub use enums::{AnchorRule, AsyncPostprocess, DecayShape, Delivery, LayerType, MaskForm, NoiseKind, NoiseSchedule};
pub use enums::{DeviceChoice, Dtype, FeatureCache, Level, NormReading, Optimizer, Regenerate, Schedule, Supervise};
pub use enums::{DocumentIds, OnStop};
pub use enums::{Objective, Reduce, Reduction, Synchronisation, Transport, Vocabulary, WindowRule};
pub use load::ConfigError;
pub use markdown::markdown;
pub use section::Key;
pub use sim::{Lasting, Law};

use section::section;
use std::collections::BTreeMap;
use std::path::PathBuf;

section! {
    /// The run itself.
    Run {
        /// Folder that holds the runs.
        dir: PathBuf = PathBuf::from("runs"),
        /// Last part of the run directory's name.
        name: String = "run".to_owned(),
        /// Seed of everything random: weights, anchors, order, candidates.
        seed: u64 = 0,
    }
}

section! {
    /// The target: the frozen model that is to be sped up.
    Model {
        /// Its Hugging Face directory: config.json, model.safetensors (or shards with an index), tokenizer.json,
        /// tokenizer_config.json with a chat template.
        target: PathBuf = PathBuf::new(),
        /// Arithmetic of target and drafter: `bfloat16` (the paper's), `float32`, or `auto`: bfloat16 on a GPU and on a
        /// CPU that multiplies it in hardware, else float32.
        dtype: Dtype = Dtype::Bfloat16,
    }
}

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
        max_new_tokens: usize = 2048,
        /// Prompts longer than this are left out, tokens.
        max_prompt_tokens: usize = 1024,
        /// Which answers the target writes: `missing`, of conversations that end with the user; `all`, each turn anew, so
        /// that the drafter learns from what the target itself says.
        regenerate: Regenerate = Regenerate::Missing,
        /// Temperature at which the target answers; 0 = always its likeliest token (the trainers: 0, or 0.7 to 0.8).
        temperature: f64 = 0.0,
        /// Which answers of a conversation the loss sees: `all`, or `last_turn`.
        supervise: Supervise = Supervise::All,
        /// Prompts answered at the same time.
        generate_batch: usize = 32,
        /// Samples with fewer supervised tokens are left out (2 × block size in TorchSpec: 32).
        min_loss_tokens: usize = 32,
        /// Longer samples are cut, tokens (the paper: 3072).
        max_length: usize = 3072,
        /// Several samples share a row of at most so many tokens, so that little of a batch is padding; each is read and learnt
        /// as it would be alone, but `train.anchors` are drawn for the row (speculators: 8192). 0 = a row a sample (SpecForge).
        pack: usize = 0,
        /// How packed samples are told apart: `fast`, or `reference`, token by token. The result is the same.
        document_ids: DocumentIds = DocumentIds::Fast,
    }
}

section! {
    /// The drafter's shape. What is not named here (hidden size, heads, RoPE) is the target's.
    Drafter {
        /// A drafter's directory to begin with, ours or a published one, instead of random weights; empty = random. Its
        /// shape must be the one that the other keys give.
        init: PathBuf = PathBuf::new(),
        /// Layers (the paper: 5).
        layers: usize = 5,
        /// Tokens of a block, the anchor included (the paper: 16).
        block_size: usize = 16,
        /// Number of tapped target layers; 0 = as many as layers (the paper).
        taps: usize = 0,
        /// Ids of the tapped target layers (id i = the output of layer i); empty = the paper's formula.
        target_layer_ids: Vec<usize> = Vec::new(),
        /// A token id that the target knows and no text contains; it stands for "to be predicted". Must be given.
        mask_token_id: i64 = -1,
        /// Standard deviation of the initial weights (Hugging Face's `initializer_range`).
        initializer_range: f64 = 0.02,
        /// Initial weight of the last norm. Hugging Face starts at 1; below 1 the first logits are calmer.
        final_norm_init: f64 = 1.0,
        /// What each layer sees of the context, `"full_attention"` or `"sliding_attention"`, one word a layer; empty = all
        /// full (the paper).
        layer_types: Vec<LayerType> = Vec::new(),
        /// Sliding layers: how far they see, tokens (Qwen3.6-27B's published drafter: 2048).
        sliding_window: usize = 2048,
        /// Sliding layers: a slot sees only the slots up to its own (SpecForge); full layers always see their whole block.
        sliding_causal: bool = true,
        /// Sliding layers: `slot`: (a + k) - c < window (SpecForge), or `anchor`: c >= a - window (speculators).
        window_rule: WindowRule = WindowRule::Slot,
        /// The context projection as one product a tap, summed, instead of one over the concatenated taps: same result but
        /// for rounding, smaller products.
        split_fc: bool = false,
        /// Attention `fused` (in groups of blocks) or `dense` (under one mask over everything: slower, as a check).
        mask: MaskForm = MaskForm::Fused,
    }
}

section! {
    /// The training steps.
    Train {
        /// Optimizer steps.
        steps: usize = 1000,
        /// Sequences in a step of one drafter (SpecForge: 4). Several drafters see as many times that in a step.
        batch: usize = 4,
        /// Anchors drawn in each sequence at each step (the paper: 512).
        anchors: usize = 512,
        /// Decay of the loss along a block, exp(-(k - 1) / gamma); 0 = the paper's: 7 for block size 16, 5 for 10, 4 for 8.
        gamma: f64 = 0.0,
        /// Which positions may be an anchor: `two_supervised` (SpecForge), `whole_block` (TorchSpec, ModelOpt, NeMo) or
        /// `before_last_block` (speculators).
        anchor_rule: AnchorRule = AnchorRule::TwoSupervised,
        /// A step always has `anchors` blocks a sequence, those that cannot be drawn weighing nothing (TorchSpec), so that
        /// every step has the same shapes; `false`: as many as the batch can fill (SpecForge).
        fixed_anchors: bool = true,
        /// `cross_entropy` (the paper), `dpace`, or `kl`: divergence from the target's own distribution.
        loss: Objective = Objective::CrossEntropy,
        /// With `dpace`: its alpha (its paper: 0.5; stable from 0.3 to 0.7).
        dpace_alpha: f64 = 0.5,
        /// By what the loss's sum is divided: `auto` (SpecForge: `rows` for `dpace`, else `weighted_mean`),
        /// `weighted_mean`, `supervised_mean` (speculators), `rows`.
        reduction: Reduction = Reduction::Auto,
        /// Blocks whose logits exist at the same time (SpecForge: 128); 0 = all. The result is the same.
        loss_chunk_blocks: usize = 128,
        /// Noise on the context features: `none` (the paper), `constant`, or `cosine` from `noise_start` to `noise_end`.
        noise: NoiseSchedule = NoiseSchedule::None,
        /// `uniform` between -n and n (speculators) or `gaussian`.
        noise_kind: NoiseKind = NoiseKind::Uniform,
        /// The noise's n at first (speculators: 0.05).
        noise_start: f64 = 0.05,
        /// The noise's n at the end, with `cosine`.
        noise_end: f64 = 0.0,
        /// Batches whose gradients add up to one step (SpecForge: 1); the mean of their losses is what a step follows.
        accumulate: usize = 1,
        /// Layers are computed again in the backward pass instead of being kept: less memory, more time.
        checkpointing: bool = false,
        /// `full`: cross-entropy over the whole vocabulary (the paper). `candidates`: over the ids of the training
        /// texts, the first `candidate_low` ids and `candidate_random` fresh ones a step: faster on a CPU; drafting
        /// always uses the whole vocabulary.
        vocabulary: Vocabulary = Vocabulary::Full,
        /// With `candidates`: the ids below this one are always among them.
        candidate_low: i64 = 2048,
        /// With `candidates`: random others, drawn anew at each step.
        candidate_random: usize = 1024,
        /// `adamw` (the paper), or `muon`: Muon on matrices, AdamW on the rest.
        optimizer: Optimizer = Optimizer::Adamw,
        /// AdamW's learning rate (the paper: 6e-4).
        learning_rate: f64 = 6e-4,
        /// AdamW's first beta.
        beta1: f64 = 0.9,
        /// AdamW's second beta (SpecForge: 0.999; NeMo: 0.95).
        beta2: f64 = 0.999,
        /// AdamW's decoupled weight decay, on every tensor that it updates (SpecForge: 0).
        weight_decay: f64 = 0.0,
        /// Muon's learning rate, before its factor 0.2 · sqrt(longer side).
        muon_learning_rate: f64 = 6e-3,
        /// Muon's momentum.
        muon_momentum: f64 = 0.95,
        /// Muon's decoupled weight decay (speculators: 0.1).
        muon_weight_decay: f64 = 0.0,
        /// Muon's Newton-Schulz iterations.
        muon_iterations: usize = 5,
        /// `cosine` to zero (the paper), `linear`, `wsd` (unchanged, then a decay; TorchSpec) or `constant`.
        schedule: Schedule = Schedule::Cosine,
        /// Share of the steps over which the learning rate rises (the paper: 0.04).
        warmup: f64 = 0.04,
        /// With `wsd`: share of the steps over which the learning rate falls (TorchSpec: 0.2).
        decay: f64 = 0.2,
        /// With `wsd`: shape of the fall, `cosine`, `linear` or `sqrt` (1 - sqrt).
        decay_shape: DecayShape = DecayShape::Cosine,
        /// Share of the learning rate at which every schedule but `constant` ends (the paper: 0; TorchSpec, NeMo: 0.1).
        min_rate: f64 = 0.0,
        /// Gradients are scaled down to this norm over all tensors together; 0 = never (the paper: 1).
        clip: f64 = 1.0,
        /// Whether the gradient's norm is read back with the other figures (`deferred`), or at `each_step`, which waits
        /// for the device.
        norm_reading: NormReading = NormReading::Deferred,
    }
}

section! {
    /// The threads and queues between target and drafter.
    Pipeline {
        /// Where the target runs: `auto`, `cpu`, `cuda:0`, ….
        target_device: DeviceChoice = DeviceChoice::Auto,
        /// Where the drafter runs: `auto`, `cpu`, `cuda:0`, ….
        drafter_device: DeviceChoice = DeviceChoice::Auto,
        /// Batches that wait between loader and target.
        batch_queue: usize = 4,
        /// Batches of hidden states that wait between target and drafter (`BufferedHSQueue`).
        hs_queue: usize = 4,
        /// `off`: the target runs for every batch. `memory`: each sample's hidden states are kept after their first
        /// pass (taps × hidden size × 2 bytes a token in bfloat16). `disk`: they are kept in files, also for later trainings
        /// on the same target, texts and taps.
        feature_cache: FeatureCache = FeatureCache::Off,
        /// With `disk`: folder of the hidden states. Empty: `data.shards` with `.states` at its end.
        feature_dir: PathBuf = PathBuf::new(),
        /// With `disk`: bytes that all hidden states in `feature_dir` may take, e.g. `"2 TB"`; `"all"`: any. A training that
        /// would need more is refused before it begins.
        feature_bytes: String = "100 GB".to_owned(),
        /// CPU threads of each worker's matrix products; 0 = all cores.
        threads: usize = 0,
        /// Several targets, e.g. `["cuda:0", "cuda:1"]`: a worker each. Empty: one, on `target_device`.
        target_devices: Vec<DeviceChoice> = Vec::new(),
        /// Several drafters: a worker each, which train as one with as many times the batch. Empty: one, on
        /// `drafter_device`.
        drafter_devices: Vec<DeviceChoice> = Vec::new(),
        /// `strict`: batches reach the drafters in the loader's order, so that results do not depend on the number of
        /// targets or their speed. `arrival`: as they are made.
        order: Delivery = Delivery::Strict,
        /// Bytes that `BufferedHSQueue` holds at most, e.g. `"4 GB"`; `"all"`: only `hs_queue` bounds it.
        hs_queue_bytes: String = "16 GB".to_owned(),
        /// How hidden states get from a target's device to a drafter's: `host` (by way of main memory) or `peer`.
        transport: Transport = Transport::Host,
        /// `batched`: the taps of a batch are copied together, and waited for once. `per_item`: one after the other.
        synchronisation: Synchronisation = Synchronisation::Batched,
        /// Whether packing and copying have a lane `post:i` of their own, so that the target runs on meanwhile: `on`, `off`,
        /// or `auto`: with targets on GPUs.
        async_postprocess: AsyncPostprocess = AsyncPostprocess::Auto,
        /// What adds up gradients over several processes: `gloo` (by way of main memory), `nccl` (from GPU to GPU), or
        /// `auto`: NCCL where each process trains on a GPU of its own and finds libnccl.so.2.
        reduce: Reduce = Reduce::Auto,
        /// With several drafters, gradients are added up `false`: after the backward pass, or `true`: while it still makes others.
        /// The same bits with two drafters; more may round differently.
        reduce_overlap: bool = false,
        /// Of several processes: seconds that each waits at the start until all have come.
        join_seconds: u64 = 600,
        /// Of several processes: one that gives no sign of life for so many seconds ends the training.
        silence_seconds: u64 = 30,
    }
}

section! {
    /// Checkpoints, from which `dflash train --resume` goes on.
    Checkpoint {
        /// Steps between two checkpoints; 0: only at the end, when the training is stopped, and when somebody asks.
        every: usize = 0,
        /// How many of them stay: the newest ones, and the best by acceptance length besides; 0 = all.
        keep: usize = 3,
        /// What becomes of the batches that are under way when the training is stopped: `drop` (the sooner end; a resumed
        /// training makes them again) or `drain` (they are trained on first).
        on_stop: OnStop = OnStop::Drop,
    }
}

section! {
    /// The instrument.
    Profile {
        /// `off`, `stages`, or `layers` (also what lies below the stages).
        level: Level = Level::Stages,
        /// Steps between two log lines of a lane.
        log_every: usize = 10,
        /// First iterations of a lane that count as warm-up.
        warmup_iterations: u64 = 2,
        /// What instrumentation may cost of an iteration's time, e.g. `"0.5%"`. Where bare iterations show that it
        /// certainly costs more, the level is lowered, and a mark says so. `"off"`: it may cost anything.
        max_overhead: String = "0.5%".to_owned(),
        /// Pairs of a bare and an instrumented iteration, from which the cost of instrumentation is measured, in each
        /// window; 0 = no iteration is bare.
        bare_pairs: u32 = 20,
        /// Iterations from one window of bare ones to the next.
        bare_every: u64 = 2_000,
        /// How much of the timeline's detail is kept, e.g. `"20 GB"`: its oldest parts go first. Iterations are kept for
        /// the whole run in any case. `"all"`: nothing goes.
        keep: String = "all".to_owned(),
        /// Whether `dflash ctl` and `dflash top` of the same user may ask things of the running training.
        control: bool = true,
        /// Whether the GPUs' own sensors are sampled, each second (NVML).
        nvml: bool = true,
        /// Whether PCIe traffic is sampled, too: each reading keeps its thread waiting for 20 ms.
        pcie: bool = false,
    }
}

section! {
    /// Held-out evaluation by the real greedy draft-verify loop.
    Eval {
        /// Steps between two evaluations while training, which waits meanwhile; there is another one after the last step. The
        /// checkpoint of such a step, if there is one, is kept by its acceptance length. 0 = none.
        every: usize = 0,
        /// Prompts for the trained drafter, from the top of the held-out file.
        prompts: usize = 24,
        /// Prompts for the two controls: an untrained drafter, and context features set to zero; 0 = no controls.
        control_prompts: usize = 12,
        /// Longest answer, tokens.
        max_new_tokens: usize = 72,
        /// 0: greedy. Else tokens are drawn from the logits divided by it, with rejection sampling, so that the answers are
        /// the target's own in distribution.
        temperature: f64 = 0.0,
    }
}

section! {
    /// Simulated devices (`sim`, `sim:1`, …): stages last as long as told here and compute nothing.
    Sim {
        /// How long stages last, by their names: `"target.forward" = "20 ms"`, `"uniform 10 ms 30 ms"`, `"normal 20 ms 2
        /// ms"` (mean, standard deviation) or `"exponential 20 ms"`. A stage that is not named takes no time.
        stages: BTreeMap<String, Lasting> = BTreeMap::new(),
        /// How far the host may be ahead of a device's work when it leaves a stage; 0 = it waits for each.
        run_ahead: Lasting = Lasting { law: Law::Constant, first: 0.0, second: 0.0 },
        /// Made-up texts.
        samples: usize = 256,
        /// Shortest text, tokens.
        shortest: usize = 3072,
        /// Longest text, tokens.
        longest: usize = 3072,
        /// Bytes of one token's hidden states (Qwen3-8B, five taps, bfloat16: 40,960).
        token_bytes: u64 = 40_960,
        /// A worker that fails, to see what becomes of the others: `"drafter:1 panics at 7"`, `"target:0 fails at 3"`
        /// (its lane, its iteration); empty = none.
        fail: String = String::new(),
    }
}

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

section! {
    /// A whole configuration file.
    Config {
        /// `[run]`
        run: Run = Run::default(),
        /// `[model]`
        model: Model = Model::default(),
        /// `[data]`
        data: Data = Data::default(),
        /// `[drafter]`
        drafter: Drafter = Drafter::default(),
        /// `[train]`
        train: Train = Train::default(),
        /// `[pipeline]`
        pipeline: Pipeline = Pipeline::default(),
        /// `[checkpoint]`
        checkpoint: Checkpoint = Checkpoint::default(),
        /// `[profile]`
        profile: Profile = Profile::default(),
        /// `[eval]`
        eval: Eval = Eval::default(),
        /// `[sim]`
        sim: Sim = Sim::default(),
        /// `[random]`
        random: Random = Random::default(),
    }
}

impl Pipeline {
    /// Whether any worker is on a simulated device; then all are.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.targets().iter().chain(&self.drafters()).any(|device| matches!(device, DeviceChoice::Sim(_)))
    }

    /// Where the targets run, a worker each.
    #[must_use]
    pub fn targets(&self) -> Vec<DeviceChoice> {
        if self.target_devices.is_empty() { vec![self.target_device] } else { self.target_devices.clone() }
    }

    /// Where the drafters run, a worker each.
    #[must_use]
    pub fn drafters(&self) -> Vec<DeviceChoice> {
        if self.drafter_devices.is_empty() { vec![self.drafter_device] } else { self.drafter_devices.clone() }
    }
}

impl Random {
    /// Whether weights and texts are random.
    #[must_use]
    pub fn is_on(&self) -> bool {
        !self.target.is_empty()
    }
}

impl Config {
    /// The keys of every section, in the order of the file.
    #[must_use]
    pub fn sections() -> [(&'static str, &'static [Key]); 11] {
        [
            ("run", Run::KEYS),
            ("model", Model::KEYS),
            ("data", Data::KEYS),
            ("drafter", Drafter::KEYS),
            ("train", Train::KEYS),
            ("pipeline", Pipeline::KEYS),
            ("checkpoint", Checkpoint::KEYS),
            ("profile", Profile::KEYS),
            ("eval", Eval::KEYS),
            ("sim", Sim::KEYS),
            ("random", Random::KEYS),
        ]
    }
}
