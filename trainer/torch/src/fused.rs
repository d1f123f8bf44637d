//! Operators of our own kernels, which run a layer's norms, rotary positions, feed-forward gates and the attention of blocks
//! in one pass over the memory each, with their gradients; and the head's loss.
//!
//! They are made for bfloat16 on Hopper GPUs (kernels/build.py). [`runs_on`] says whether a tensor is such a one; everywhere
//! else the plain operators do the same.

use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};

use tch::{Device, Kind, Tensor};

use crate::Result;
use crate::ffi::{self, RawTensor, answer};
use crate::kernels;

static ENABLED: AtomicBool = AtomicBool::new(true);
static ATTENDS: AtomicBool = AtomicBool::new(true);

/// Switches our own kernels on (as they are) or off, for the whole process: to compare them with the plain operators.
pub fn enable_kernels(on: bool) {
    ENABLED.store(on, Ordering::Relaxed);
}

/// Switches [`attend`] alone on (as it is) or off, for the whole process: attention is libtorch's then.
pub fn enable_attend(on: bool) {
    ATTENDS.store(on, Ordering::Relaxed);
}

/// Whether [`attend`] is to work on tensors of this kind on this device.
#[must_use]
pub fn attends(kind: Kind, device: Device) -> bool {
    ATTENDS.load(Ordering::Relaxed) && runs(kind, device)
}

/// Whether our own kernels can work on `x`: bfloat16 on a GPU that they are made for, and not switched off.
#[must_use]
pub fn runs_on(x: &Tensor) -> bool {
    runs(x.kind(), x.device())
}

/// The same, of tensors of this kind on this device.
#[must_use]
pub fn runs(kind: Kind, device: Device) -> bool {
    kind == Kind::BFloat16 && ENABLED.load(Ordering::Relaxed) && kernels::made_for(device)
}

/// Widest row of [`norm`].
pub const WIDEST_NORM: i64 = 8192;

/// Whether [`norm`] takes rows of this width.
#[must_use]
pub fn norm_takes(width: i64) -> bool {
    width <= WIDEST_NORM && width % 16 == 0
}

/// Whether [`rope`] and [`attend`] take heads of this size.
#[must_use]
pub fn heads_take(head_dim: i64) -> bool {
    matches!(head_dim, 64 | 128)
}

/// Whether [`attend`] takes blocks of this many tokens.
#[must_use]
pub fn attend_takes(block: i64) -> bool {
    block > 0 && 64 % block == 0
}

/// Whether [`cross_entropy`] takes this many columns.
#[must_use]
pub fn loss_takes(columns: i64) -> bool {
    columns % 16 == 0
}

/// Root-mean-square norm of the last dimension of x (with `add`: of x + add, and that sum comes back too).
///
/// # Errors
/// libtorch or the device refused.
pub fn norm(x: &Tensor, add: Option<&Tensor>, weight: &Tensor, eps: f64) -> Result<(Tensor, Option<Tensor>)> {
    let (mut out, mut sum) = (null_mut(), null_mut());
    let add = add.map_or(null(), raw);
    // SAFETY: the inputs are alive, `out` and `sum` are valid to write to, the answer goes to `answer` alone.
    unsafe { answer("a norm", ffi::dflash_norm(raw(x), add, raw(weight), eps, &raw mut out, &raw mut sum)) }?;
    // SAFETY: the call succeeded, so `out` is a new tensor of ours; `sum` is one or still null.
    unsafe { Ok((made(out), (!sum.is_null()).then(|| made(sum)))) }
}

/// Heads of x [b, rows, heads · d], each normed (with a `weight` `[d]`) and rotated to its row's position; tables
/// [positions, d], positions `[b · rows]` (Int64) -> [b, rows, heads, d].
///
/// # Errors
/// libtorch or the device refused.
pub fn rope(
    x: &Tensor,
    weight: Option<&Tensor>,
    tables: (&Tensor, &Tensor),
    positions: &Tensor,
    eps: f64,
) -> Result<Tensor> {
    let mut out = null_mut();
    let weight = weight.map_or(null(), raw);
    let (cos, sin) = tables;
    // SAFETY: the inputs are alive, `out` is valid to write to, the answer goes to `answer` alone.
    let said = unsafe { ffi::dflash_rope(raw(x), weight, raw(cos), raw(sin), raw(positions), eps, &raw mut out) };
    // SAFETY: as above; after success `out` is a new tensor of ours.
    unsafe { answer("rotary positions", said).map(|()| made(out)) }
}

/// `silu(gate) · up`.
///
/// # Errors
/// libtorch or the device refused.
pub fn swiglu(gate: &Tensor, up: &Tensor) -> Result<Tensor> {
    let mut out = null_mut();
    // SAFETY: the inputs are alive, `out` is valid to write to, the answer goes to `answer` alone; after success `out` is a
    // new tensor of ours.
    unsafe { answer("a gate", ffi::dflash_swiglu(raw(gate), raw(up), &raw mut out)).map(|()| made(out)) }
}

/// Which context rows a block sees, and which tokens of its own.
#[derive(Debug)]
pub struct Sight<'a> {
    /// [b, N] (Int64): the first context row that block j does not see; 0: it sees none.
    pub anchors: &'a Tensor,
    /// [b, N] (Int64): the first context row that block j may see.
    pub first: &'a Tensor,
    /// Tokens of a block.
    pub block: i64,
    /// Slot k sees a context row only if it is fewer than this many rows before k's own position.
    pub window: Option<i64>,
    /// A slot sees only itself and earlier slots of its block.
    pub causal: bool,
}

/// Attention of blocks: q [b, N·B, H, d], keys and values of the context [b, S, G, d] and of the blocks [b, N·B, G, d]
/// -> [b, N·B, H, d].
///
/// # Errors
/// libtorch or the device refused.
pub fn attend(q: &Tensor, context: (&Tensor, &Tensor), own: (&Tensor, &Tensor), sight: &Sight<'_>) -> Result<Tensor> {
    let inputs = [q, context.0, context.1, own.0, own.1, sight.anchors, sight.first].map(raw);
    // Far beyond any context, and far from overflow.
    let window = sight.window.unwrap_or(1 << 30);
    let mut out = null_mut();
    // SAFETY: the inputs are alive, `out` is valid to write to, the answer goes to `answer` alone.
    let said = unsafe { ffi::dflash_attend(inputs.as_ptr(), sight.block, window, sight.causal, &raw mut out) };
    // SAFETY: as above; after success `out` is a new tensor of ours.
    unsafe { answer("attention of blocks", said).map(|()| made(out)) }
}

/// Of logits [R, V] in bfloat16, contiguous: each row's cross-entropy against its label (Int64) and its likeliest column (of
/// equals, the lowest), both `[R]`. The logits are overwritten with the gradient of Σ weight · cross-entropy; weights
/// `[R]` are float32.
///
/// # Errors
/// libtorch or the device refused.
pub fn cross_entropy(logits: &Tensor, labels: &Tensor, weights: &Tensor) -> Result<(Tensor, Tensor)> {
    let (mut loss, mut best) = (null_mut(), null_mut());
    // SAFETY: the inputs are alive, `loss` and `best` are valid to write to, the answer goes to `answer` alone.
    let said =
        unsafe { ffi::dflash_cross_entropy(raw(logits), raw(labels), raw(weights), &raw mut loss, &raw mut best) };
    // SAFETY: as above; after success both are new tensors of ours.
    unsafe { answer("the loss", said).map(|()| (made(loss), made(best))) }
}

pub(crate) fn raw(tensor: &Tensor) -> *const RawTensor {
    tensor.as_ptr().cast()
}

/// A tensor that the shim has made, as tch's.
///
/// # Safety
/// `tensor` is a tensor that the shim has just handed out, and nothing else owns it.
pub(crate) unsafe fn made(tensor: *mut RawTensor) -> Tensor {
    // SAFETY: tch's C_tensor is libtorch's tensor, as the shim's is; ownership is the caller's promise.
    unsafe { Tensor::from_ptr(tensor.cast()) }
}
