//! What the profiler sees of libtorch: streams, events, the caching allocator and its kernel tracer.
//!
//! A lane asks once, on its own thread and after it has entered the stream that it works on:
//!
//! ```no_run
//! # use dflash_trainer::instrument;
//! # let device = tch::Device::cuda_if_available();
//! let stream = instrument::stream(device); // None on the CPU: its spans have host time alone
//! let allocator = instrument::allocator(device);
//! ```

mod allocator;
mod kernels;
mod stream;

use dflash_profiler::DeviceError;
use dflash_torch::TorchError;
use tch::Device;

pub use allocator::TorchAllocator;
pub use kernels::KinetoCapture;
pub use stream::{TorchEvent, TorchStream};

/// The calling thread's current stream of `device`, where its operators go. `None` on the CPU, and where libtorch gives
/// none: then spans have host time alone.
#[must_use]
pub fn stream(device: Device) -> Option<TorchStream> {
    TorchStream::current(device).ok()
}

/// The counters of the caching allocator of `device`. `None` on the CPU, which has none.
#[must_use]
pub fn allocator(device: Device) -> Option<TorchAllocator> {
    TorchAllocator::of(device).ok()
}

fn told(error: TorchError) -> DeviceError {
    DeviceError(error.to_string())
}
