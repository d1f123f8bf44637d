//! Which of its kernels libtorch may take for `scaled_dot_product_attention`; by itself it may take any.

use crate::Result;
use crate::ffi::{self, RawAttention, answer};

/// Kernels of libtorch's attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionKernels {
    /// Products and a softmax, one after the other.
    pub math: bool,
    /// Flash attention: 16-bit numbers, no mask but the causal one.
    pub flash: bool,
    /// The memory-efficient kernel: takes a mask, and no key/value head for several query heads.
    pub efficient: bool,
    /// cuDNN's: 16-bit numbers.
    pub cudnn: bool,
}

impl AttentionKernels {
    /// None of them.
    pub const NONE: Self = Self { math: false, flash: false, efficient: false, cudnn: false };
    /// All of them, as libtorch begins.
    pub const ALL: Self = Self { math: true, flash: true, efficient: true, cudnn: true };
}

/// From now on libtorch takes only these, in the whole process: call it while nobody computes. Work that none of them takes
/// is refused by libtorch when it comes.
///
/// # Errors
/// libtorch refused.
pub fn allow_attention(kernels: AttentionKernels) -> Result<()> {
    let AttentionKernels { math, flash, efficient, cudnn } = kernels;
    // SAFETY: takes plain numbers; the answer goes to `answer` alone.
    unsafe { answer("choosing attention", ffi::dflash_attention_allow(RawAttention { math, flash, efficient, cudnn })) }
}

/// What libtorch may take now.
///
/// # Errors
/// libtorch refused.
pub fn allowed_attention() -> Result<AttentionKernels> {
    let mut out = RawAttention::default();
    // SAFETY: `out` is valid to write to; the answer goes to `answer` alone.
    unsafe { answer("asking for attention's kernels", ffi::dflash_attention_allowed(&raw mut out)) }?;
    let RawAttention { math, flash, efficient, cudnn } = out;
    Ok(AttentionKernels { math, flash, efficient, cudnn })
}
