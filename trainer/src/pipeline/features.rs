//! Hidden states that are kept between epochs.

use crate::config::FeatureCache;
use std::collections::HashMap;
use tch::{Device, Tensor};

/// Concatenated taps [len, n·D] of samples that the target has already read, in main memory.
#[derive(Debug)]
pub(super) struct Features {
    kept: Option<HashMap<usize, Tensor>>,
}

impl Features {
    pub(super) fn new(choice: FeatureCache) -> Self {
        Self { kept: (choice == FeatureCache::Memory).then(HashMap::new) }
    }

    /// Which of the samples the target must read.
    pub(super) fn missing(&self, samples: &[usize]) -> Vec<usize> {
        let known = |i: &usize| self.kept.as_ref().is_some_and(|kept| kept.contains_key(i));
        (0..samples.len()).filter(|&row| !known(&samples[row])).collect()
    }

    /// Keeps the taps [b, S, n·D] of the `rows` of a batch (tap row i belongs to batch row `rows[i]`).
    pub(super) fn keep(&mut self, samples: &[usize], rows: &[usize], lengths: &[i64], taps: &Tensor) {
        let Some(kept) = &mut self.kept else { return };
        for (at, &row) in rows.iter().enumerate() {
            let own = taps.get(at as i64).narrow(0, 0, lengths[row]).to_device(Device::Cpu);
            kept.insert(samples[row], own.copy());
        }
    }

    /// A batch's taps [b, S, n·D] from what is kept, padded with zeros; every sample must be there.
    pub(super) fn gather(&self, samples: &[usize], device: Device) -> Option<Tensor> {
        let kept = self.kept.as_ref()?;
        let rows: Vec<&Tensor> = samples.iter().map(|i| kept.get(i)).collect::<Option<_>>()?;
        Some(Tensor::pad_sequence(&rows, true, 0.0, "right").to_device(device))
    }
}
