//! What a training loop uses of all this.

use std::path::PathBuf;
use std::sync::Arc;

use super::super::lane;
use super::super::profiler::Profiler;
use super::Requests;
use crate::KernelCapture;

impl Profiler {
    /// Registers the tracer that captures kernels. A later one takes its place.
    pub fn kernel_capture(&self, capture: Arc<dyn KernelCapture>) {
        if let Some(inner) = &self.0 {
            inner.control.register(capture);
        }
    }

    /// Captures the kernels of the next iterations; the training goes on. Waits until the tracer has begun, since only
    /// then it is known which iteration is the first one that lies in the capture whole; returns the file that is
    /// written when the last one has ended: `kernels-<first>-<n>.json` in the run directory, with a `.meta.json` beside
    /// it ([`KernelWindow`](dflash_timeline::control::KernelWindow)) to join it to the timeline.
    ///
    /// Iterations are counted on the first lane named `drafter…`; without one, on the lane that has begun most of them.
    ///
    /// # Errors
    /// In words: no tracer is registered, it refused, a capture runs, nothing is recorded, no iteration began for two
    /// minutes, or the caller is itself in a lane, whose iteration would never end.
    pub fn capture_kernels(&self, iterations: u64) -> Result<PathBuf, String> {
        let Some(inner) = &self.0 else { return Err("nothing is recorded: the profiler is disabled".to_owned()) };
        if lane::with(|_| ()).is_some() {
            return Err("a lane's own thread cannot wait for its next iteration; ask from another thread".to_owned());
        }
        inner.control.start_kernels(iterations, "by the program")?.begun()
    }

    /// What a user asks of the training: a checkpoint, an end. The loop looks between two steps. A program that never
    /// asks for this handle is taken not to look: `dflash ctl` then says so instead of waiting.
    #[must_use]
    pub fn requests(&self) -> Requests {
        self.0.as_ref().map(|inner| inner.control.requests.hand_out()).unwrap_or_default()
    }
}
