//! What workers do, apart from when: the loops know queues and stages, a [`World`] knows how a batch is read, packed and
//! learnt from. There are two worlds, libtorch's and a simulated one.

use super::collective::{Collective, Ended};
use super::skips::Skipped;
use super::streams::Streams;
use super::{Batch, HiddenStates};
use crate::eval::RunEvaluation;
use dflash_profiler::{DeviceStream, IterationGuard};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The stream that a worker's spans are timed on; `None`: on the host alone.
pub(super) type Stream = Option<Arc<dyn DeviceStream>>;

/// What batches and hidden states are made of, and who makes them.
pub(super) trait World: Sized {
    /// Token ids of a batch.
    type Ids: Send;
    /// What a target's forward pass leaves, where it left it.
    type Fresh: Send;
    /// Packed, not yet where the drafter takes it from.
    type Packed;
    /// What the queue holds.
    type Taps: Send;
    /// Makes batches.
    type Load: Load<Self>;
    /// Runs the target.
    type Target: Read<Self>;
    /// Packs and copies what the target left.
    type Post: Post<Self>;
    /// Trains a drafter.
    type Drafter: Learn<Self>;
}

/// The loader's work.
pub(super) trait Load<W: World>: Send {
    /// Before a batch is picked.
    fn read(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Whether a sample's hidden states are there before anybody has read it.
    fn has(&self, _sample: usize) -> bool {
        false
    }

    /// Samples that a batch will have: what can be fetched of their hidden states is, while the batch waits its turn.
    fn fetch(&mut self, _samples: &[usize]) -> Result<(), String> {
        Ok(())
    }

    /// Pads rows to a batch.
    fn pack(&mut self, rows: &[&[i64]]) -> Result<W::Ids, String>;
}

/// A target's work. Spans `target.upload` and `target.forward` are its own.
pub(super) trait Read<W: World>: Send {
    /// On its own thread, before the first batch; the streams are its own as long as the loop holds them.
    fn begin(&mut self) -> Result<Streams, String>;

    /// Runs the target over the rows that nobody has read yet; `None`: there are none.
    fn forward(&mut self, batch: &Batch<W::Ids>) -> Result<Option<W::Fresh>, String>;
}

/// What follows a forward pass, on the target's lane or on one of its own.
pub(super) trait Post<W: World>: Send {
    /// On the thread that it works on, before the first batch.
    fn begin(&mut self) -> Result<Streams, String>;

    /// Puts the taps of a batch together. `None`: the training is being stopped.
    fn pack(&mut self, batch: &Batch<W::Ids>, fresh: Option<W::Fresh>) -> Result<Option<W::Packed>, String>;

    /// Brings them to where drafter `to` takes them from (`None`: it is not known which); returns also their bytes.
    fn copy(&mut self, packed: W::Packed, to: Option<usize>) -> Result<(W::Taps, u64), String>;
}

/// A drafter's work. The spans of its stages are its own, but for those of the loop.
pub(super) trait Learn<W: World>: Send {
    /// On its own thread, before the first batch.
    fn begin(&mut self) -> Result<Streams, String>;

    /// Gradients of one batch.
    fn backward(&mut self, states: &HiddenStates<W::Taps>) -> Result<(), String>;

    /// Makes the gradients of the last batch those of all drafters' last batches together.
    fn reduce(&mut self, group: &mut dyn Collective) -> Result<(), Ended>;

    /// [`Learn::backward`] and [`Learn::reduce`]: the outer error is this drafter's own.
    fn backward_together(
        &mut self,
        states: &HiddenStates<W::Taps>,
        group: &mut dyn Collective,
    ) -> Result<Result<(), Ended>, String> {
        self.backward(states)?;
        Ok(self.reduce(group))
    }

    /// Updates the weights; `step` counts from 0.
    fn update(&mut self, step: usize);

    /// Figures since the last call, of all drafters together. Waits for the device.
    fn figures(&mut self, group: &mut dyn Collective) -> Result<Figures, Ended>;

    /// Rate of learning at a step, counted from 0.
    fn rate(&self, step: usize) -> Option<f64>;

    /// After `step` steps, on the first drafter: a checkpoint that is due, or that someone asked for.
    fn after_step(&mut self, pass: &IterationGuard, step: usize);

    /// After `step` steps, on the first drafter: an evaluation on held-out prompts; `go_on` is asked now and then. `None`: it
    /// was given up, or there is nothing to say. What fails is no reason to end the training.
    fn evaluate(&mut self, _step: usize, _go_on: &dyn Fn() -> bool) -> Result<Option<RunEvaluation>, String> {
        Ok(None)
    }

    /// For so long nothing was learnt: rates leave it out.
    fn paused(&mut self, _time: Duration) {}

    /// After the last of `steps`, on the first drafter.
    fn at_end(&mut self, _steps: usize) {}

    /// The newest checkpoint.
    fn newest(&self) -> Option<PathBuf> {
        None
    }
}

/// Figures of some steps. `None` is not known.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    pub(super) loss: Option<f64>,
    pub(super) accuracy: Option<f64>,
    /// Accuracy of slots 1..B.
    pub(super) slots: Vec<f64>,
    /// Cross-entropy of slots 1..B.
    pub(super) slot_losses: Vec<f64>,
    /// Mean over the blocks of their leading right slots, and one more.
    pub(super) block_acceptance: Option<f64>,
    /// Mean gradient norm before clipping.
    pub(super) gradient_norm: Option<f64>,
    /// This drafter's steps: `None`, or why one was skipped.
    pub(super) steps: Vec<Option<Skipped>>,
    /// Of all drafters together.
    pub(super) tokens_per_s: Option<f64>,
    pub(super) supervised_per_s: Option<f64>,
}
