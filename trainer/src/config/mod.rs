//! The configuration of a run: a TOML file, every key documented where it is declared.
//!
//! Relative paths are relative to the current directory, as the command line's are.

mod check;
mod check_sim;
mod data;
mod device_choice;
mod drafter;
mod enums;
mod learning;
mod load;
mod markdown;
mod random;
mod section;
mod set;
mod sim;
mod train;

pub(crate) use check::{bytes, percent};
pub(crate) use check_sim::{Planted, planted};
pub use data::Data;
pub use device_choice::DeviceChoice;
pub use drafter::Drafter;
pub use enums::{AsyncPostprocess, Delivery, DocumentIds, Dtype, FeatureCache, Level, OnStop, Reduce, Regenerate};
pub use enums::{Supervise, Synchronisation, Transport};
pub use learning::{AnchorRule, Attention, DecayShape, LayerType, MaskForm, NoiseKind, NoiseSchedule, NormReading};
pub use learning::{Objective, Optimizer, Reduction, Schedule, Vocabulary, WindowRule};
pub use load::ConfigError;
pub use markdown::markdown;
pub use random::Random;
pub use section::Key;
pub use sim::{Lasting, Law, Sim};
pub use train::Train;

use section::section;
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
        /// Arithmetic of target and drafter: `bfloat16`, `float32`, or `auto`: bfloat16 on a GPU and on a
        /// CPU that multiplies it in hardware, else float32.
        /// Source: the paper.
        dtype: Dtype = Dtype::Bfloat16,
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
        /// Source: dflash; PyTorch's DistributedDataParallel: true.
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
