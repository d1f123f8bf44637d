//! What tch lacks: CUDA's half of libtorch, opened at run time; streams and events; the caching allocator's counters;
//! kernel capture; kernels of our own for what libtorch does in many passes; c10d's store and Gloo for several processes.
//!
//! The binary links libtorch_cpu and libc10 alone. Before anything asks for CUDA, [`load_cuda`] opens libtorch_cuda.so if
//! it is there: its static initialisers register the device with the dispatcher, as if it had been linked.
//!
//! The rest goes through a small C++ shim (native/) over libtorch's device-generic headers, so that it compiles without
//! CUDA. On a machine without a GPU each call is there and fails with a text that says what is missing.

mod allocator;
mod attention;
mod capture;
mod current;
mod device;
mod error;
mod event;
mod ffi;
pub mod fused;
mod gloo;
mod gradient;
mod handoff;
mod kernels;
mod library;
mod nccl;
mod nccl_library;
mod operator;
pub mod optimizer;
mod raw;
mod runtime;
mod store;
mod stream;
mod tensor;
mod trace;

pub use allocator::{AllocatorCounters, CachingAllocator};
pub use attention::{AttentionKernels, allow_attention, allowed_attention};
pub use capture::{prepare_capture, start_capture, stop_capture};
pub use current::CurrentStream;
pub use device::{free_memory, gpu_count};
pub use error::TorchError;
pub use event::{Event, Route};
pub use gloo::{Gloo, Member};
pub use gradient::GradientWatch;
pub use handoff::{Handoff, Moment};
pub use library::{CudaLibrary, load_cuda};
pub use nccl::{Nccl, NcclId};
pub use operator::as_operator;
pub use store::{Rendezvous, Store};
pub use stream::{Priority, Stream};
pub use tensor::{is_pinned, pinned};
pub use trace::{CapturedThread, CapturedTrace};

/// What a call of this crate gives.
pub type Result<T> = std::result::Result<T, TorchError>;
