//! A caching allocator that only counts.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::{AllocatorCounters, AllocatorStats, DeviceError};

/// Counters that a test moves. Clones are the same allocator.
#[derive(Clone, Debug)]
pub struct SimAllocator {
    device: String,
    state: Arc<Mutex<Result<AllocatorCounters, DeviceError>>>,
}

impl SimAllocator {
    /// An allocator that has done nothing yet, of a device called e.g. `cuda:0`.
    #[must_use]
    pub fn new(device: &str) -> Self {
        Self { device: device.to_owned(), state: Arc::new(Mutex::new(Ok(AllocatorCounters::default()))) }
    }

    /// Changes the counters, unless the allocator has failed.
    pub fn change(&self, change: impl FnOnce(&mut AllocatorCounters)) {
        if let Ok(counters) = &mut *self.lock() {
            change(counters);
        }
    }

    /// From now on it has no counters, and says why.
    pub fn fail(&self, text: &str) {
        *self.lock() = Err(DeviceError(text.to_owned()));
    }

    fn lock(&self) -> MutexGuard<'_, Result<AllocatorCounters, DeviceError>> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

impl AllocatorStats for SimAllocator {
    fn device(&self) -> String {
        self.device.clone()
    }

    fn counters(&self) -> Result<AllocatorCounters, DeviceError> {
        self.lock().clone()
    }
}
