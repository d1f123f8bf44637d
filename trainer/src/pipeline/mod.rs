//! The threaded pipeline: loader -> `TargetForwardLoop` -> `BufferedHSQueue` -> `DrafterTrainLoop`.

mod checkpoint;
mod drafter_loop;
mod features;
pub(crate) mod lane;
mod loader;
mod metrics;
mod observe;
mod order;
mod queue;
mod run;
mod skips;
mod step;
mod target_loop;

pub use checkpoint::Saving;
pub use drafter_loop::DrafterTrainLoop;
pub use observe::{LaneReport, Observer, StageMean, Step};
pub use queue::BufferedHSQueue;
pub use run::{Outcome, Parts, Stop, Text, run};
pub use step::{DrafterStep, Stepped};
pub use target_loop::TargetForwardLoop;

use tch::Tensor;

/// Sequences on their way to the target.
#[derive(Debug)]
pub struct Batch {
    /// Counts from 0, in the loader's order.
    pub number: u64,
    /// Indices of the samples.
    pub samples: Vec<usize>,
    /// [b, S] Int64, padded at the end
    pub ids: Tensor,
}

/// A batch with what the target made of it.
#[derive(Debug)]
pub struct HiddenStates {
    /// Number of the batch.
    pub number: u64,
    /// Indices of the samples.
    pub samples: Vec<usize>,
    /// [b, S, n·D] concatenated taps
    pub taps: Tensor,
}
