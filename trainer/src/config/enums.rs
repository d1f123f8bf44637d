//! Keys that take one of a few words.

use serde::{Deserialize, Serialize};

/// Declares an enum whose values are written in lower case in the file.
macro_rules! words {
    ($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $value_doc:literal])* $value:ident,)* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[doc = $value_doc])* $value,)* }
    };
}

words! {
    /// Arithmetic of the models.
    Dtype {
        /// bfloat16 on a GPU and on a CPU that multiplies it in hardware, else float32.
        Auto,
        /// Weights, activations and logits in bfloat16, norms in float32.
        Bfloat16,
        /// Everything in float32.
        Float32,
    }
}

words! {
    /// Rows of the head that the training loss looks at.
    Vocabulary {
        /// All of them.
        Full,
        /// Ids that occur in the training texts, and some others.
        Candidates,
    }
}

words! {
    /// Optimizer.
    Optimizer {
        /// AdamW on every tensor.
        Adamw,
        /// Muon on matrices, AdamW on the rest.
        Muon,
    }
}

words! {
    /// Learning rate over the steps, after the warm-up.
    Schedule {
        /// Half a cosine, to zero.
        Cosine,
        /// A straight line, to zero.
        Linear,
        /// Unchanged, then falling at the end.
        Wsd,
        /// Unchanged.
        Constant,
    }
}

words! {
    /// Which positions may be an anchor; the block's neighbours are always looked for in the anchor's own document.
    AnchorRule {
        /// The anchor and the token after it are supervised (SpecForge).
        TwoSupervised,
        /// The anchor is supervised and its whole block lies in the document (TorchSpec, ModelOpt, NeMo).
        WholeBlock,
        /// As `whole_block`, and one more token follows the block (speculators).
        BeforeLastBlock,
    }
}

words! {
    /// What a layer of the drafter sees of the context.
    LayerType {
        /// All of it.
        FullAttention,
        /// The nearest part of it.
        SlidingAttention,
    }
}

words! {
    /// Where the window of a sliding layer begins.
    WindowRule {
        /// Context row c is seen by slot k of the block at anchor a iff (a + k) - c < W (SpecForge, NeMo, Hugging Face).
        Slot,
        /// Iff c >= a - W: the same for all slots (speculators).
        Anchor,
    }
}

words! {
    /// How the drafter's attention is computed.
    MaskForm {
        /// In groups of blocks, over the part of the context that they see.
        Fused,
        /// Under one mask over the whole context and all blocks.
        Dense,
    }
}

words! {
    /// What is trained for.
    Objective {
        /// Cross-entropy with the text's tokens, decayed along the block.
        CrossEntropy,
        /// Cross-entropy weighted by how likely the slots before are right.
        Dpace,
        /// Divergence from the target's own distribution, decayed along the block.
        Kl,
    }
}

words! {
    /// By what the sum over the slots is divided.
    Reduction {
        /// `rows` for `dpace`, else `weighted_mean`.
        Auto,
        /// The sum of the slots' weights (SpecForge, NeMo, TorchSpec; for `dpace`: ModelOpt).
        WeightedMean,
        /// The number of supervised slots (speculators).
        SupervisedMean,
        /// The number of texts (for `dpace`: SpecForge).
        Rows,
    }
}

words! {
    /// Noise on the context features over the steps.
    NoiseSchedule {
        /// None.
        None,
        /// Always `noise_start`.
        Constant,
        /// From `noise_start` to `noise_end` along half a cosine.
        Cosine,
    }
}

words! {
    /// Distribution of the noise.
    NoiseKind {
        /// Evenly between -n and n.
        Uniform,
        /// Normal with standard deviation n.
        Gaussian,
    }
}

words! {
    /// When the gradient's norm is read back from the device.
    NormReading {
        /// With the other figures, every `log_every` steps.
        Deferred,
        /// At each step, which waits for the device.
        EachStep,
    }
}

words! {
    /// Shape of the decay at the end of `wsd`.
    DecayShape {
        /// Half a cosine.
        Cosine,
        /// A straight line.
        Linear,
        /// One minus a square root: steep first.
        Sqrt,
    }
}

words! {
    /// Whether hidden states are kept between epochs.
    FeatureCache {
        /// No: computed for every batch.
        Off,
        /// In main memory.
        Memory,
        /// In files.
        Disk,
    }
}

words! {
    /// Which of a conversation's answers the loss sees.
    Supervise {
        /// All of them.
        All,
        /// The last one.
        LastTurn,
    }
}

words! {
    /// How the documents of packed rows are numbered; the numbers are the same.
    DocumentIds {
        /// Run by run.
        Fast,
        /// Token by token.
        Reference,
    }
}

words! {
    /// Which answers the target writes itself.
    Regenerate {
        /// Those that are missing: of conversations that end with the user.
        Missing,
        /// All, one turn after another.
        All,
    }
}

words! {
    /// In which order batches of hidden states reach the drafters.
    Delivery {
        /// The loader's, whichever target is faster.
        Strict,
        /// That in which targets have made them.
        Arrival,
    }
}

words! {
    /// How hidden states get from target to drafter.
    Transport {
        /// By way of main memory.
        Host,
        /// From device to device.
        Peer,
    }
}

words! {
    /// What adds up gradients over processes.
    Reduce {
        /// NCCL where each process trains on a GPU of its own and has the library, else Gloo.
        Auto,
        /// By way of main memory.
        Gloo,
        /// From GPU to GPU.
        Nccl,
    }
}

words! {
    /// How often a copy of a batch's hidden states is waited for.
    Synchronisation {
        /// Once: the taps are joined and copied together.
        Batched,
        /// For each tap.
        PerItem,
    }
}

words! {
    /// Whether packing and copying have a lane of their own.
    AsyncPostprocess {
        /// With targets on GPUs.
        Auto,
        /// Yes.
        On,
        /// No: each target does it between two forward passes.
        Off,
    }
}

words! {
    /// What becomes of the batches that are under way when a training is stopped.
    OnStop {
        /// They are dropped after the step that runs; a resumed training makes them again.
        Drop,
        /// They are trained on first.
        Drain,
    }
}

words! {
    /// How much is recorded.
    Level {
        /// Nothing.
        Off,
        /// Iterations and stages.
        Stages,
        /// Also spans below the stages.
        Layers,
    }
}

/// A device, written `auto`, `cpu`, `cuda`, `cuda:N` or `sim:N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DeviceChoice {
    /// As `cuda` where there is a GPU, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// The first GPU; of several processes, the one of this process's number on its host.
    OwnCuda,
    /// A GPU by its number.
    Cuda(usize),
    /// A simulated device by its number.
    Sim(usize),
}

impl TryFrom<String> for DeviceChoice {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::OwnCuda),
            "sim" => Ok(Self::Sim(0)),
            _ => text
                .split_once(':')
                .and_then(|(kind, n)| Some((kind, n.parse().ok()?)))
                .and_then(|(kind, n)| match kind {
                    "cuda" => Some(Self::Cuda(n)),
                    "sim" => Some(Self::Sim(n)),
                    _ => None,
                })
                .ok_or_else(|| format!("`{text}` is no device; write \"auto\", \"cpu\" or \"cuda:0\"")),
        }
    }
}

impl From<DeviceChoice> for String {
    fn from(device: DeviceChoice) -> Self {
        match device {
            DeviceChoice::Auto => "auto".to_owned(),
            DeviceChoice::Cpu => "cpu".to_owned(),
            DeviceChoice::OwnCuda => "cuda".to_owned(),
            DeviceChoice::Cuda(n) => format!("cuda:{n}"),
            DeviceChoice::Sim(n) => format!("sim:{n}"),
        }
    }
}
