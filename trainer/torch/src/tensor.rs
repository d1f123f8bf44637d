//! What tch does not say of tensors: which streams use them, and pinned memory.

use std::ptr::null_mut;

use tch::{Kind, Tensor};

use crate::ffi::{self, answer};
use crate::fused::{made, raw};
use crate::stream::Stream;
use crate::{Result, TorchError};

impl Stream {
    /// Tells the caching allocator that this stream uses `tensor`, which another stream has made: once it is freed, its
    /// memory is not handed out again before this stream's work of that moment is done. Call it after the stream has been
    /// made to wait for the maker's event.
    ///
    /// # Errors
    /// The tensor is not on a GPU.
    pub fn uses(&self, tensor: &Tensor) -> Result<()> {
        // SAFETY: both are alive for the call; the answer goes to `answer` alone.
        unsafe {
            answer("a stream's use of a tensor", ffi::dflash_tensor_record_stream(raw(tensor), &raw const self.0))
        }
    }
}

/// A tensor in main memory that the device copies from and to by itself: a copy to or from it does not hold the caller up.
/// Its memory comes from libtorch's own cache of pinned pages. What it holds is undefined.
///
/// # Errors
/// There is no GPU, or no such memory.
pub fn pinned(shape: &[i64], kind: Kind) -> Result<Tensor> {
    let mut out = null_mut();
    let kind = scalar_type(kind)?;
    // SAFETY: `shape` has the length given, `out` is valid to write to, the answer goes to `answer` alone.
    unsafe { answer("pinned memory", ffi::dflash_tensor_pinned(shape.as_ptr(), shape.len(), kind, &raw mut out)) }?;
    // SAFETY: the call succeeded: `out` is a new tensor of ours.
    Ok(unsafe { made(out) })
}

/// Whether a tensor is in pinned memory. (tch's own question brings a deprecation warning of libtorch's each time.)
///
/// # Errors
/// libtorch refused.
pub fn is_pinned(tensor: &Tensor) -> Result<bool> {
    let mut out = false;
    // SAFETY: the tensor is alive, `out` is valid to write to, the answer goes to `answer` alone.
    unsafe { answer("whether memory is pinned", ffi::dflash_tensor_is_pinned(raw(tensor), &raw mut out)) }?;
    Ok(out)
}

/// libtorch's ScalarType of a kind of number that is copied between host and device here.
fn scalar_type(kind: Kind) -> Result<i8> {
    match kind {
        Kind::Uint8 => Ok(0),
        Kind::Int => Ok(3),
        Kind::Int64 => Ok(4),
        Kind::Half => Ok(5),
        Kind::Float => Ok(6),
        Kind::Double => Ok(7),
        Kind::Bool => Ok(11),
        Kind::BFloat16 => Ok(15),
        other => Err(TorchError::Torch { doing: "pinned memory", words: format!("not for {other:?}") }),
    }
}
