//! The caching allocator, as the profiler wants it.

use dflash_profiler::{AllocatorCounters, AllocatorStats, DeviceError};
use dflash_torch::CachingAllocator;
use tch::Device;

use super::told;

/// libtorch's caching allocator of one GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TorchAllocator(CachingAllocator);

impl TorchAllocator {
    /// The allocator of `device`.
    ///
    /// # Errors
    /// `device` is no GPU, or is not there.
    pub fn of(device: Device) -> Result<Self, DeviceError> {
        CachingAllocator::of(device).map(Self).map_err(told)
    }
}

impl AllocatorStats for TorchAllocator {
    fn device(&self) -> String {
        format!("cuda:{}", self.0.device_index())
    }

    fn counters(&self) -> Result<AllocatorCounters, DeviceError> {
        let counters = self.0.counters().map_err(told)?;
        Ok(AllocatorCounters {
            allocations: counters.allocations,
            device_allocations: counters.device_allocations,
            device_frees: counters.device_frees,
            retries: counters.retries,
            out_of_memory: counters.out_of_memory,
            reserved_bytes: counters.reserved_bytes,
            active_bytes: counters.active_bytes,
        })
    }
}
