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

/// A device, written `auto`, `cpu` or `cuda:N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DeviceChoice {
    /// The first GPU, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// A GPU by its number.
    Cuda(usize),
}

impl TryFrom<String> for DeviceChoice {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.as_str() {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|n| n.parse().ok())
                .map(Self::Cuda)
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
        }
    }
}
