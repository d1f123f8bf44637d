//! Keys that take one of a few words: of the drafter and its training.

use super::enums::words;

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
    /// What computes attention on GPUs.
    Attention {
        /// Our own kernel for the drafter's blocks where it runs, libtorch's choice for the rest.
        Own,
        /// libtorch's choice.
        Auto,
        /// cuDNN's kernel.
        Cudnn,
        /// Flash attention, and the memory-efficient kernel under a mask.
        Flash,
        /// The memory-efficient kernel.
        Efficient,
        /// Products and a softmax.
        Math,
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
