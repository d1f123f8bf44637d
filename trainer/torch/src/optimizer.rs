//! The optimizer's work over all weights at once: the gradients' norm, AdamW's step, forgetting the gradients.

use std::ptr::null_mut;

use tch::{Kind, Tensor};

use crate::Result;
use crate::ffi::{self, RawAdamW, RawAdamWLists, RawTensor, answer};
use crate::fused::{made, raw, runs_on};

/// One step's settings.
#[derive(Clone, Copy, Debug)]
pub struct AdamWStep {
    /// Learning rate.
    pub rate: f64,
    /// Decay of the two moments.
    pub betas: (f64, f64),
    /// Added to the root of the second moment.
    pub eps: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
}

/// What of a step only the device knows: scalars there, which nobody reads back.
#[derive(Clone, Copy, Debug)]
pub struct OnDevice<'a> {
    /// By what the gradients are multiplied, float32.
    pub scale: &'a Tensor,
    /// Whether there is a step at all, Bool; if not, nothing changes.
    pub finite: &'a Tensor,
    /// Number of the step, from 1; any kind.
    pub step: &'a Tensor,
}

/// A weight with all that AdamW keeps of it.
#[derive(Debug)]
pub struct AdamWWeight<'a> {
    /// float32.
    pub master: &'a Tensor,
    /// First moment, float32.
    pub first: &'a Tensor,
    /// Second moment, float32.
    pub second: &'a Tensor,
    /// As backward left it.
    pub gradient: &'a Tensor,
    /// What computes; rounded from the master.
    pub working: &'a Tensor,
}

/// The norm of all `tensors` together, a float32 scalar on their device; `None` of none. Waits for nothing.
///
/// # Errors
/// libtorch or the device refused.
pub fn norm_of_all(tensors: &[Tensor]) -> Result<Option<Tensor>> {
    if tensors.is_empty() {
        return Ok(None);
    }
    let list: Vec<_> = tensors.iter().map(raw).collect();
    let mut out = null_mut();
    // SAFETY: the tensors are alive, `out` is valid to write to, the answer goes to `answer` alone.
    unsafe { answer("a norm of gradients", ffi::dflash_norm_of_all(list.as_ptr(), list.len(), &raw mut out)) }?;
    // SAFETY: the call succeeded: `out` is a new tensor of ours.
    Ok(Some(unsafe { made(out) }))
}

/// The next backward pass makes this weight's gradient anew, which costs less than adding to zeros.
///
/// # Errors
/// libtorch refused.
pub fn forget_gradient(weight: &mut Tensor) -> Result<()> {
    let weight: *mut RawTensor = weight.as_mut_ptr().cast();
    // SAFETY: the tensor is alive and ours alone for the call; the answer goes to `answer` alone.
    unsafe { answer("forgetting a gradient", ffi::dflash_forget_gradient(weight)) }
}

/// One step of AdamW over all weights. Waits for nothing.
///
/// On a GPU that our kernels are made for, one pass a weight: 28 bytes of memory traffic a parameter. Elsewhere libtorch's
/// fused step, which wants the gradients in float32 first and works on all weights in one call.
///
/// # Errors
/// libtorch or the device refused.
pub fn adamw(weights: &[AdamWWeight<'_>], step: &AdamWStep, device: OnDevice<'_>) -> Result<()> {
    let _guard = tch::no_grad_guard();
    let (own, rest): (Vec<_>, Vec<_>) = weights.iter().partition(|w| takes(w));
    let (beta1, beta2) = step.betas;
    let settings = RawAdamW { rate: step.rate, weight_decay: step.weight_decay, beta1, beta2, eps: step.eps };
    let scalars = if own.is_empty() { Tensor::new() } else { scalars(step, device) };
    for w in own {
        let tensors = [w.master, w.first, w.second, w.gradient, w.working].map(raw);
        // SAFETY: all tensors are alive, and of the sizes and kinds that `takes` has seen; the answer goes to `answer` alone.
        unsafe { answer("AdamW's step", ffi::dflash_adamw(&raw const settings, tensors.as_ptr(), raw(&scalars))) }?;
    }
    if rest.is_empty() { Ok(()) } else { by_libtorch(&rest, &settings, device) }
}

fn takes(w: &AdamWWeight<'_>) -> bool {
    let alike = |t: &Tensor| t.kind() == Kind::Float && t.is_contiguous() && t.size() == w.working.size();
    runs_on(w.working)
        && w.working.is_contiguous()
        && w.gradient.kind() == Kind::BFloat16
        && [w.master, w.first, w.second].into_iter().all(alike)
}

/// What our kernel wants of the device's scalars: float32, `[4]`. The corrections are computed in float64: 1 - 0.999 has
/// three digits left in float32.
fn scalars(step: &AdamWStep, device: OnDevice<'_>) -> Tensor {
    let count = device.step.to_kind(Kind::Double).clamp_min(1.0);
    let correction = |beta: f64| -> Tensor { 1.0 - (&count * beta.ln()).exp() };
    let rate = step.rate / correction(step.betas.0);
    let all = [
        device.scale.to_kind(Kind::Double),
        device.finite.to_kind(Kind::Double),
        rate,
        correction(step.betas.1).sqrt(),
    ];
    Tensor::stack(&all, 0).to_kind(Kind::Float)
}

/// libtorch's step divides the gradients by a number that lies on the device, and reads there whether to do anything.
fn by_libtorch(weights: &[&AdamWWeight<'_>], settings: &RawAdamW, device: OnDevice<'_>) -> Result<()> {
    let gradients: Vec<Tensor> = weights.iter().map(|w| wide(w.gradient)).collect();
    let divisor = device.scale.to_kind(Kind::Float).reciprocal();
    let skip = device.finite.logical_not().to_kind(Kind::Float);
    let step = device.step.to_kind(Kind::Float);
    let list = |part: fn(&AdamWWeight<'_>) -> *const RawTensor| weights.iter().map(|w| part(w)).collect::<Vec<_>>();
    let (masters, firsts, seconds) = (list(|w| raw(w.master)), list(|w| raw(w.first)), list(|w| raw(w.second)));
    let slopes: Vec<_> = gradients.iter().map(raw).collect();
    let lists = RawAdamWLists {
        masters: masters.as_ptr(),
        gradients: slopes.as_ptr(),
        firsts: firsts.as_ptr(),
        seconds: seconds.as_ptr(),
        step: raw(&step),
    };
    let settings: *const RawAdamW = settings;
    let (divisor, skip) = (raw(&divisor), raw(&skip));
    // SAFETY: all lists have `weights.len()` tensors, which are alive; the answer goes to `answer` alone.
    unsafe {
        answer("AdamW's step", ffi::dflash_fused_adamw(&raw const lists, weights.len(), settings, divisor, skip))
    }?;
    for w in weights {
        w.working.shallow_clone().copy_(w.master);
    }
    Ok(())
}

/// A gradient in float32 that the step may divide in place.
fn wide(gradient: &Tensor) -> Tensor {
    if gradient.kind() == Kind::Float { gradient.copy() } else { gradient.to_kind(Kind::Float) }
}
