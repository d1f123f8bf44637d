//! When a weight's gradient is complete, while the backward pass still makes others.

use std::ffi::c_void;
use std::fmt::{Debug, Formatter};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

use tch::Tensor;

use crate::Result;
use crate::ffi::{self, RawWatch, answer};
use crate::fused::raw;

type Told = Box<dyn Fn(usize) + Send + Sync>;

/// Hooks on weights, as long as this lives. Make it on the thread and the stream of the backward passes: libtorch adds
/// gradients up on the stream that was current then.
pub struct GradientWatch {
    watches: Vec<*mut RawWatch>,
    /// In a box of its own: the hooks have its address.
    told: Box<Told>,
}

// SAFETY: libtorch's nodes belong to no thread, and the closure is Send and Sync; a backward pass and the end of the watch
// exclude each other, since both belong to who trains the weights.
unsafe impl Send for GradientWatch {}

impl GradientWatch {
    /// `told` gets a weight's number each time its gradient of a backward pass is complete: on the thread of that pass, whose
    /// current stream has it. If it panics, nobody hears of that weight.
    ///
    /// # Errors
    /// A weight is no leaf, or wants no gradient.
    pub fn new<'a>(
        weights: impl IntoIterator<Item = &'a Tensor>,
        told: impl Fn(usize) + Send + Sync + 'static,
    ) -> Result<Self> {
        let mut own = Self { watches: Vec::new(), told: Box::new(Box::new(told)) };
        for (number, weight) in weights.into_iter().enumerate() {
            let (with, mut watch) = ((&raw const *own.told).cast_mut().cast::<c_void>(), null_mut());
            // SAFETY: the weight is alive, `watch` is valid to write to; what `with` points to lives as long as the hook.
            unsafe {
                let refused = ffi::dflash_gradient_watch(raw(weight), tell, with, number, &raw mut watch);
                answer("watch a gradient", refused)?;
            }
            own.watches.push(watch);
        }
        Ok(own)
    }
}

unsafe extern "C" fn tell(with: *mut c_void, number: usize) {
    // SAFETY: the closure of the watch whose hook this is; it is only ever read.
    let told = unsafe { &*with.cast::<Told>() };
    // A panic must not unwind through libtorch.
    let _ = catch_unwind(AssertUnwindSafe(|| told(number)));
}

impl Drop for GradientWatch {
    fn drop(&mut self) {
        for watch in self.watches.drain(..) {
            // SAFETY: made by `dflash_gradient_watch`, taken away once; no backward pass is under way.
            unsafe { ffi::dflash_gradient_unwatch(watch) };
        }
    }
}

impl Debug for GradientWatch {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GradientWatch").field("weights", &self.watches.len()).finish_non_exhaustive()
    }
}
