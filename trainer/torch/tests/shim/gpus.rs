//! GPUs for tests; those of other crates take this file too. What needs a GPU says that it was skipped where there is none.

use dflash_torch::gpu_count;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tch::Device;

pub const GPU: Device = Device::Cuda(0);

/// The GPUs, for one test at a time: others' work would lie between a test's events. `None` where there are fewer than
/// `wanted`; says so on stderr, for a skipped test must not look like one that ran.
pub fn gpus(test: &str, wanted: usize) -> Option<MutexGuard<'static, ()>> {
    static ALONE: Mutex<()> = Mutex::new(());
    let found = gpu_count();
    if found < wanted {
        let told = format!("SKIPPED {test}: it needs {wanted} GPU(s), libtorch sees {found}\n");
        // Past the test harness, which hides what a passing test prints; and no stderr is no reason to fail.
        let _ = std::io::stderr().write_all(told.as_bytes());
        return None;
    }
    Some(ALONE.lock().unwrap_or_else(PoisonError::into_inner))
}
