//! What the tests share.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use dflash_torch::Stream;
use serde_json::Value;
use tch::{Device, Kind, Tensor};

pub use crate::gpus::{GPU, gpus};

/// Every test that computes on the CPU calls this first: what libtorch has once looked for and not found, CUDA's half among
/// it, it never looks for again, and another test's GPU would be out of reach.
pub fn whole_libtorch() {
    dflash_torch::load_cuda();
}

/// One capture at a time in a process, so one test of it at a time.
pub fn alone() -> MutexGuard<'static, ()> {
    whole_libtorch();
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
