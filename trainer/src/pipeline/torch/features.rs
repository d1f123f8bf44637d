//! Hidden states that are kept between epochs.

use crate::features::{DiskFeatures, FeatureError};
use dflash_profiler::span;
use std::collections::HashMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use tch::{Device, Tensor};

/// Concatenated taps [len, n·D] of samples that a target has already read, in main memory or on the disk, for all targets
/// together.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct KeptStates {
    state: Mutex<State>,
    changed: Condvar,
    /// `None`: in main memory.
    disk: Option<DiskFeatures>,
}

#[derive(Debug, Default)]
struct State {
    /// In main memory: all of them; else those that were fetched, and how many batches wait for each.
    kept: HashMap<usize, (Tensor, usize)>,
    abandoned: bool,
}

impl KeptStates {
    /// `disk`: where they are kept, if not in main memory.
    pub(in crate::pipeline) fn new(disk: Option<DiskFeatures>) -> Self {
        Self { disk, ..Self::default() }
    }

    /// Whether a sample is on the disk.
    pub(super) fn has(&self, sample: usize) -> bool {
        self.disk.as_ref().is_some_and(|disk| disk.has(sample))
    }

    /// Reads from the disk what is there of a batch that a target will ask for soon.
    pub(super) fn fetch(&self, samples: &[usize]) -> Result<(), String> {
        let Some(disk) = &self.disk else { return Ok(()) };
        for &sample in samples.iter().filter(|&&sample| disk.has(sample)) {
            if let Some((_, wanted)) = self.lock().kept.get_mut(&sample) {
                *wanted += 1;
                continue;
            }
            let states = disk.read(sample).map_err(|error| error.to_string())?;
            self.lock().kept.entry(sample).or_insert((states, 0)).1 += 1;
        }
        Ok(())
    }

    /// Keeps the taps [b, S, n·D] of the `rows` of a batch (tap row i belongs to batch row `rows[i]`).
    pub(super) fn keep(&self, samples: &[usize], rows: &[usize], lengths: &[i64], taps: &Tensor) -> Result<(), String> {
        // From a GPU to main memory the host waits for the device.
        let _sync = taps.device().is_cuda().then(|| span!("sync.copy"));
        let own = |(at, &row): (usize, &usize)| {
            (samples[row], taps.get(at as i64).narrow(0, 0, lengths[row]).to_device(Device::Cpu).copy())
        };
        let own: Vec<(usize, Tensor)> = rows.iter().enumerate().map(own).collect();
        match &self.disk {
            Some(disk) => {
                disk.write(&own).map_err(|error| error.to_string())?;
                // Whoever found nothing waits by now, and hears of it.
                drop(self.lock());
            }
            None => self.lock().kept.extend(own.into_iter().map(|(sample, states)| (sample, (states, 0)))),
        }
        self.changed.notify_all();
        Ok(())
    }

    /// A batch's taps [b, S, n·D] from what is kept, padded with zeros. Waits for those that another target is about to
    /// read: the loader has seen to it that each is read, in a batch that was taken before. `None`: the training stops.
    pub(super) fn gather(&self, samples: &[usize]) -> Result<Option<Tensor>, String> {
        let mut rows = Vec::with_capacity(samples.len());
        for &sample in samples {
            match self.one(sample)? {
                Some(row) => rows.push(row),
                None => return Ok(None),
            }
        }
        Ok(Some(Tensor::pad_sequence(&rows, true, 0.0, "right")))
    }

    fn one(&self, sample: usize) -> Result<Option<Tensor>, String> {
        let mut state = self.lock();
        while !state.kept.contains_key(&sample) && !self.has(sample) {
            if state.abandoned {
                return Ok(None);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match (&self.disk, state.kept.get_mut(&sample)) {
            (None, found) => Ok(found.map(|(states, _)| states.shallow_clone())),
            (Some(_), Some((states, wanted))) => {
                let states = states.shallow_clone();
                *wanted -= 1;
                if *wanted == 0 {
                    state.kept.remove(&sample);
                }
                Ok(Some(states))
            }
            // It came to the disk after the loader had looked.
            (Some(disk), None) => {
                drop(state);
                disk.read(sample).map(Some).map_err(|error| error.to_string())
            }
        }
    }

    /// Nobody reads any more: who waits need not.
    pub(in crate::pipeline) fn abandon(&self) {
        self.lock().abandoned = true;
        self.changed.notify_all();
    }

    /// After the last batch: what is on the disk is brought there.
    pub(in crate::pipeline) fn close(&self) -> Result<(), FeatureError> {
        self.disk.as_ref().map_or(Ok(()), DiskFeatures::close)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A map is whole between two insertions.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
