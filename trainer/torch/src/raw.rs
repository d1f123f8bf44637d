//! What the shim's functions take and give, laid out as in native/shim.h.

use std::ffi::{c_char, c_void};

/// A stream: libtorch's name for it, and the device runtime's own handle.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawStream {
    pub id: i64,
    pub native: *mut c_void,
    pub device: i16,
}

impl RawStream {
    /// To be filled by a call.
    pub(crate) const EMPTY: Self = Self { id: 0, native: std::ptr::null_mut(), device: 0 };
}

/// The allocator's counters, in shim.h's order.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawAllocator {
    pub allocations: i64,
    pub device_allocations: i64,
    pub device_frees: i64,
    pub retries: i64,
    pub out_of_memory: i64,
    pub reserved_bytes: i64,
    pub active_bytes: i64,
}

/// Kernels of libtorch's attention.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RawAttention {
    pub math: bool,
    pub flash: bool,
    pub efficient: bool,
    pub cudnn: bool,
}

/// A thread of a capture.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawThread {
    pub tid: i64,
    pub operators: u64,
}

/// A `c10::Event`, seen through its address alone.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawEvent {
    opaque: [u8; 0],
}

/// A capture's result, likewise.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawTrace {
    opaque: [u8; 0],
}

/// libtorch's `at::Tensor`, seen through its address alone.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawTensor {
    opaque: [u8; 0],
}

/// How a kernel is launched.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawKernel {
    pub threads: u32,
    pub shared: u32,
    pub tile: i32,
    pub keys: i32,
}

/// A step of AdamW.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawAdamW {
    pub rate: f64,
    pub weight_decay: f64,
    pub beta1: f64,
    pub beta2: f64,
    pub eps: f64,
}

/// Weights of a step of AdamW, in lists of one length.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawAdamWLists {
    pub masters: *const *const RawTensor,
    pub gradients: *const *const RawTensor,
    pub firsts: *const *const RawTensor,
    pub seconds: *const *const RawTensor,
    pub step: *const RawTensor,
}

/// c10d's store, seen through its address alone.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawStore {
    opaque: [u8; 0],
}

/// A process's end of a group, likewise.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawGloo {
    opaque: [u8; 0],
}

/// A hook on a weight, likewise.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct RawWatch {
    opaque: [u8; 0],
}

/// Where a store is.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawRendezvous {
    pub host: *const c_char,
    pub prefix: *const c_char,
    pub timeout_ms: i64,
    pub port: u16,
    pub server: bool,
}

/// A process of a group.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct RawMember {
    pub address: *const c_char,
    pub timeout_ms: i64,
    pub rank: i32,
    pub size: i32,
}
