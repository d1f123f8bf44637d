//! Stands where CPU sampling will: it is not built in yet, and says so.

pub use dflash_timeline::control::{CpuReport, ThreadStack};

use super::super::profiler::Profiler;

const ABSENT: &str = "CPU sampling is not built in";

impl Profiler {
    /// Begins to sample what every thread does, so often a second.
    ///
    /// # Errors
    /// Why it cannot, in words.
    pub fn cpu_start(&self, _hz: u32) -> Result<(), String> {
        Err(ABSENT.to_owned())
    }

    /// Ends sampling.
    ///
    /// # Errors
    /// Why there is no report, in words.
    pub fn cpu_stop(&self) -> Result<CpuReport, String> {
        Err(ABSENT.to_owned())
    }

    /// What every thread does now.
    ///
    /// # Errors
    /// Why it cannot be known, in words.
    pub fn stacks(&self) -> Result<Vec<ThreadStack>, String> {
        Err(ABSENT.to_owned())
    }

    /// Samples a second while CPU time is sampled.
    pub(super) fn cpu_hz(&self) -> Option<u32> {
        None
    }
}
