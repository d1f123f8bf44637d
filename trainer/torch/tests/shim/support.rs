//! What the tests share.

use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dflash_torch::{Stream, gpu_count};
use serde_json::Value;
use tch::{Device, Kind, Tensor};

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

/// One capture at a time in a process, so one test of it at a time.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Work for a GPU that lasts some milliseconds, and no waiting.
pub fn multiply(device: Device, times: usize) -> Tensor {
    let a = Tensor::ones([4096, 4096], (Kind::Float, device));
    (0..times).fold(a.shallow_clone(), |product, _| product.matmul(&a) / 4096.0)
}

pub fn current() -> Stream {
    Stream::current(GPU).expect("a current stream")
}

/// The events of a Chrome trace.
pub fn events(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).expect("the trace");
    let json: Value = serde_json::from_str(&text).expect("valid JSON");
    json["traceEvents"].as_array().expect("traceEvents").clone()
}

/// Threads (the kernel's ids) on which an operator whose name contains `name` ran.
pub fn threads_with(events: &[Value], category: &str, name: &str) -> Vec<i64> {
    let hit = |e: &&Value| e["cat"] == category && e["name"].as_str().is_some_and(|n| n.contains(name));
    let mut tids: Vec<i64> = events.iter().filter(hit).filter_map(|e| e["tid"].as_i64()).collect();
    tids.sort_unstable();
    tids.dedup();
    tids
}
