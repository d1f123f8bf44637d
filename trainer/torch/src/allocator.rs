//! The caching allocator's counters.

use tch::Device;

use crate::Result;
use crate::device;
use crate::ffi::{self, RawAllocator, answer};

/// Counters since the process's start (or since libtorch was told to reset them), and the present state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocatorCounters {
    /// Blocks handed out.
    pub allocations: u64,
    /// Calls to the device's own allocator: cudaMalloc, or a mapping of an expandable segment.
    pub device_allocations: u64,
    /// Calls to the device's own free, or unmappings.
    pub device_frees: u64,
    /// Times when the cache was emptied to make room.
    pub retries: u64,
    /// Requests that failed.
    pub out_of_memory: u64,
    /// Bytes taken from the device.
    pub reserved_bytes: u64,
    /// Bytes handed out, or still used by a stream.
    pub active_bytes: u64,
}

/// libtorch's caching allocator, of one GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachingAllocator {
    device: i16,
}

impl CachingAllocator {
    /// The allocator of `device`.
    ///
    /// # Errors
    /// `device` is no GPU, or is not there.
    pub fn of(device: Device) -> Result<Self> {
        Ok(Self { device: device::gpu(device)? })
    }

    /// Its GPU's index.
    #[must_use]
    pub fn device_index(&self) -> i16 {
        self.device
    }

    /// The counters now. Never waits for the device; takes the allocator's lock, so it waits while another thread is in
    /// cudaMalloc on this device.
    ///
    /// # Errors
    /// libtorch has no caching allocator for it.
    pub fn counters(&self) -> Result<AllocatorCounters> {
        let mut raw = RawAllocator::default();
        // SAFETY: `raw` is valid to write to; the answer goes to `answer` alone.
        unsafe { answer("the allocator's counters", ffi::dflash_allocator_counters(self.device, &raw mut raw)) }?;
        // libtorch counts in i64, and never below 0.
        let count = |value: i64| u64::try_from(value).unwrap_or(0);
        Ok(AllocatorCounters {
            allocations: count(raw.allocations),
            device_allocations: count(raw.device_allocations),
            device_frees: count(raw.device_frees),
            retries: count(raw.retries),
            out_of_memory: count(raw.out_of_memory),
            reserved_bytes: count(raw.reserved_bytes),
            active_bytes: count(raw.active_bytes),
        })
    }
}
