//! Hidden states that are kept between epochs.

use dflash_profiler::span;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, PoisonError};
use tch::{Device, Tensor};

/// Concatenated taps [len, n·D] of samples that a target has already read, in main memory, for all targets together.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Features {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    kept: HashMap<usize, Tensor>,
    abandoned: bool,
}

impl Features {
    /// Keeps the taps [b, S, n·D] of the `rows` of a batch (tap row i belongs to batch row `rows[i]`).
    pub(super) fn keep(&self, samples: &[usize], rows: &[usize], lengths: &[i64], taps: &Tensor) {
        // From a GPU to main memory the host waits for the device.
        let _sync = taps.device().is_cuda().then(|| span!("sync.copy"));
        for (at, &row) in rows.iter().enumerate() {
            let own = taps.get(at as i64).narrow(0, 0, lengths[row]).to_device(Device::Cpu).copy();
            self.lock().kept.insert(samples[row], own);
        }
        self.changed.notify_all();
    }

    /// A batch's taps [b, S, n·D] from what is kept, padded with zeros. Waits for those that another target is about to
    /// read: the loader has seen to it that each is read, in a batch that was taken before. `None`: the training stops.
    pub(super) fn gather(&self, samples: &[usize]) -> Option<Tensor> {
        let mut state = self.lock();
        while !samples.iter().all(|i| state.kept.contains_key(i)) {
            if state.abandoned {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let rows: Vec<Tensor> = samples.iter().filter_map(|i| state.kept.get(i)).map(Tensor::shallow_clone).collect();
        drop(state);
        Some(Tensor::pad_sequence(&rows, true, 0.0, "right"))
    }

    /// Nobody reads any more: who waits need not.
    pub(in crate::pipeline) fn abandon(&self) {
        self.lock().abandoned = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        // A map is whole between two insertions.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
