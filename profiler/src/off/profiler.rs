//! The handle without the feature `spans`: it starts nothing, and what it could give is empty or an error that says why.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use dflash_timeline::record::{Severity, Totals};

use super::{Counter, Lane};
use crate::{CpuReport, KernelCapture, LaneAccount, Options, Result, ThreadStack};

/// Why there are no samples.
const NOT_COMPILED: &str = "this program was built without instrumentation (the feature `spans`)";

/// Records nothing: the feature `spans` is off.
#[derive(Clone, Debug, Default)]
pub struct Profiler;

impl Profiler {
    /// Starts nothing, and cannot fail.
    pub fn start(_options: Options) -> Result<Self> {
        Ok(Self)
    }

    /// A profiler that records nothing.
    #[must_use]
    pub fn disabled() -> Self {
        Self
    }

    /// A lane that records nothing.
    #[must_use]
    pub fn lane(&self, _name: &str, _device: &str) -> Lane {
        Lane
    }

    /// A counter that records nothing.
    #[must_use]
    pub fn counter(&self, _name: &str, _unit: &str) -> Counter {
        Counter
    }

    /// Does nothing.
    pub fn mark(&self, _severity: Severity, _text: &str) {}

    /// Does nothing: without iterations there is nothing to join kernels to.
    pub fn kernel_capture(&self, _capture: Arc<dyn KernelCapture>) {}

    /// Captures nothing.
    ///
    /// # Errors
    /// Always.
    pub fn capture_kernels(&self, _iterations: u64) -> std::result::Result<PathBuf, String> {
        Err("nothing is recorded: this program was built without the feature `spans`".to_owned())
    }

    /// Does nothing.
    #[inline(always)]
    pub fn constant(&self, _name: &str, _unit: &str, _value: f64) {}

    /// Requests that never come.
    #[must_use]
    pub fn requests(&self) -> Requests {
        Requests
    }

    /// `None`: nothing can fail.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        None
    }

    /// Samples nothing, and says so.
    pub fn cpu_start(&self, _hz: u32) -> std::result::Result<(), String> {
        Err(NOT_COMPILED.to_owned())
    }

    /// Nothing was sampled.
    pub fn cpu_stop(&self) -> std::result::Result<CpuReport, String> {
        Err(NOT_COMPILED.to_owned())
    }

    /// Samples nothing, and says so.
    pub fn pprof_start(&self, _hz: u32) -> std::result::Result<(), String> {
        Err(NOT_COMPILED.to_owned())
    }

    /// Nothing was sampled, and nothing is written.
    pub fn pprof_stop(&self, _file: &Path) -> std::result::Result<CpuReport, String> {
        Err(NOT_COMPILED.to_owned())
    }

    /// Asks no thread, and says so.
    pub fn stacks(&self) -> std::result::Result<Vec<ThreadStack>, String> {
        Err(NOT_COMPILED.to_owned())
    }

    /// Totals of nothing.
    pub fn finish(&self) -> Totals {
        Totals::default()
    }

    /// No lane recorded anything.
    #[must_use]
    pub fn lanes(&self) -> Vec<LaneAccount> {
        Vec::new()
    }
}

/// No GPU is asked.
#[must_use]
pub fn gpu_details() -> Vec<crate::timeline::GpuDetails> {
    Vec::new()
}

/// Requests that never come.
#[derive(Clone, Debug, Default)]
pub struct Requests;

impl Requests {
    /// Never.
    #[inline(always)]
    #[must_use]
    pub fn take_checkpoint(&self) -> bool {
        false
    }

    /// Does nothing.
    pub fn checkpoint_written(&self, _outcome: std::result::Result<PathBuf, String>) {}

    /// Never.
    #[inline(always)]
    #[must_use]
    pub fn stop(&self) -> bool {
        false
    }
}
