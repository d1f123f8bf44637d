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
        /// Unchanged.
        Constant,
    }
}

words! {
    /// Whether hidden states are kept between epochs.
    FeatureCache {
        /// No: computed for every batch.
        Off,
        /// In main memory.
        Memory,
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

/// A device, written `auto`, `cpu`, `cuda:N` or `sim:N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DeviceChoice {
    /// The first GPU, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
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
            "cuda" => Ok(Self::Cuda(0)),
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
            DeviceChoice::Cuda(n) => format!("cuda:{n}"),
            DeviceChoice::Sim(n) => format!("sim:{n}"),
        }
    }
}
