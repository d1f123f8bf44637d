//! Whether a device is a GPU that is there, asked before libtorch is.

use tch::Device;

use crate::ffi;
use crate::runtime::Runtime;
use crate::{Result, TorchError, load_cuda};

/// GPUs that libtorch sees. Opens CUDA's half of libtorch if that has not happened yet.
#[must_use]
pub fn gpu_count() -> usize {
    load_cuda();
    // SAFETY: takes nothing and cannot fail; the registry that it reads is atomic.
    usize::try_from(unsafe { ffi::dflash_device_count() }).unwrap_or(0)
}

/// Bytes of a GPU's memory that no process has taken; what libtorch's allocator keeps for later is taken.
///
/// # Errors
/// The device is no GPU or refuses, or the process has no libcudart that says so.
pub fn free_memory(device: Device) -> Result<usize> {
    let index = gpu(device)?;
    let none = || TorchError::Torch { doing: "asking for free memory", words: "no libcudart".to_owned() };
    Runtime::get().ok_or_else(none)?.free_memory(index)
}

/// The index of a GPU that is there.
pub(crate) fn gpu(device: Device) -> Result<i16> {
    let Device::Cuda(number) = device else {
        return Err(TorchError::NotAGpu { device: format!("{device:?}").to_lowercase() });
    };
    let gpus = gpu_count();
    match i16::try_from(number) {
        Ok(index) if number < gpus => Ok(index),
        _ => Err(TorchError::NoGpu { device: number, why: load_cuda().why_not(gpus) }),
    }
}
