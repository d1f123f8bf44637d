//! Keys that take one of a few words: of data, pipeline and instrument.

/// Declares an enum whose values are written in lower case in the file.
macro_rules! words {
    ($(#[doc = $doc:literal])* $name:ident { $($(#[doc = $value_doc:literal])* $value:ident,)* }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum $name { $($(#[doc = $value_doc])* $value,)* }
    };
}
pub(super) use words;

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
