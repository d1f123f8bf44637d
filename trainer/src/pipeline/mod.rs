//! The threaded pipeline: loader -> `TargetForwardLoop` -> `BufferedHSQueue` -> `DrafterTrainLoop`, with any number of
//! targets and drafters.

mod attention;
mod checkpoint;
pub mod collective;
mod crew;
mod drafter_loop;
mod held_out;
pub(crate) mod lane;
mod loader;
mod metrics;
mod observe;
mod order;
mod parts;
mod pauses;
mod post_loop;
mod queue;
mod run;
mod scene;
mod shared;
mod sim;
mod skips;
mod step;
mod streams;
mod target_loop;
mod torch;
mod transport;
mod work;

pub use attention::choose as choose_attention;
pub use checkpoint::Saving;
pub use held_out::HeldOut;
pub use observe::{LaneReport, Observer, StageMean, Step};
pub use parts::{Outcome, Parts, Stop, Text};
pub use queue::{BufferedHSQueue, Depth, Room};
pub use run::run;
pub use shared::Among;
pub use sim::{Simulated, Simulation, simulate};
pub use step::{DrafterStep, Share, Stepped, Update};

/// Sequences on their way to a target.
#[derive(Debug)]
pub(crate) struct Batch<I> {
    /// Counts from 0, in the loader's order.
    number: u64,
    /// The training step that it belongs to.
    step: u64,
    /// Number of its first row among all of the step's.
    first_row: u64,
    /// Indices of the samples.
    samples: Vec<usize>,
    /// Rows that the target must read: the others it has kept.
    unread: Vec<usize>,
    /// [b, S], padded at the end.
    ids: I,
}

/// A batch with what the target made of it.
#[derive(Debug)]
pub(crate) struct HiddenStates<T> {
    number: u64,
    step: u64,
    first_row: u64,
    samples: Vec<usize>,
    /// [b, S, n·D] concatenated taps.
    taps: T,
}

impl<T> HiddenStates<T> {
    fn of<I>(batch: Batch<I>, taps: T) -> Self {
        let Batch { number, step, first_row, samples, .. } = batch;
        Self { number, step, first_row, samples, taps }
    }
}
