//! libtorch's kernel tracer, as the profiler wants it.

use std::path::Path;
use std::sync::{Mutex, PoisonError};

use dflash_profiler::{DeviceError, KernelCapture};
use dflash_torch::{CapturedTrace, start_capture, stop_capture};

use super::told;

/// Bytes of a thread's name that the kernel keeps.
const NAME_BYTES: usize = 15;

/// Captures kernels of all GPUs and operators of all threads, by Kineto.
#[derive(Debug, Default)]
pub struct KinetoCapture {
    last: Mutex<Option<CapturedTrace>>,
}

impl KinetoCapture {
    /// A tracer. There is one in a process, however many of these are made.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// What the last capture brought.
    #[must_use]
    pub fn last(&self) -> Option<CapturedTrace> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl KernelCapture for KinetoCapture {
    fn start(&self) -> Result<Vec<String>, DeviceError> {
        start_capture().map_err(told)
    }

    fn stop(&self, file: &Path) -> Result<(), DeviceError> {
        let trace = stop_capture(file).map_err(told)?;
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(trace);
        Ok(())
    }

    fn lanes_without_operators(&self, lanes: &[String]) -> Vec<String> {
        let last = self.last();
        let names: Vec<&str> = last.iter().flat_map(|t| &t.threads).filter_map(|t| t.name.as_deref()).collect();
        let seen = |lane: &&String| names.iter().any(|name| name.as_bytes() == kept(lane));
        lanes.iter().filter(|lane| !seen(lane)).cloned().collect()
    }
}

/// A thread's name as the kernel keeps it.
fn kept(name: &str) -> &[u8] {
    let bytes = name.as_bytes();
    &bytes[..bytes.len().min(NAME_BYTES)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_name_is_known_by_its_first_fifteen_bytes() {
        let capture = KinetoCapture::new();
        assert_eq!(capture.lanes_without_operators(&["loader".to_owned()]), ["loader"]);
        let thread = |name: &str| dflash_torch::CapturedThread { tid: 1, name: Some(name.to_owned()), operators: 1 };
        let threads = vec![thread("target:0"), thread("a-long-lane's-n")];
        let trace = CapturedTrace { file: "k.json".into(), begin_ns: 0, kernels: 0, threads };
        *capture.last.lock().unwrap() = Some(trace);
        let lanes = ["target:0", "target:00", "a-long-lane's-name", "loader"].map(str::to_owned);
        assert_eq!(capture.lanes_without_operators(&lanes), ["target:00", "loader"]);
    }
}
