//! Memory that lanes on a GPU take before the first batch.
//!
//! A caching allocator that sees a larger batch than any before, or one more of them in the queue, asks its device for memory,
//! which holds everybody up. So each lane takes at its begin, on its own streams, what its largest batch needs, and gives it
//! back to the allocator at once, which keeps it.

use crate::device::place;
use crate::instrument;
use crate::model::pad_rows;
use crate::pipeline::parts::Text;
use dflash_profiler::AllocatorStats;
use dflash_torch::free_memory;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tch::{Device, Kind, Tensor};

/// The longest texts: no batch is larger than theirs.
#[derive(Clone, Debug)]
pub(in crate::pipeline) struct Largest {
    /// Their places among the texts.
    pub(super) samples: Vec<usize>,
    /// Whether other batches are smaller.
    varies: bool,
}

impl Largest {
    /// Of batches of so many texts.
    pub(in crate::pipeline) fn of(texts: &[Text], batch: usize) -> Self {
        let mut samples: Vec<usize> = (0..texts.len()).collect();
        samples.sort_by_key(|&i| std::cmp::Reverse(texts[i].ids.len()));
        let ends = samples.first().zip(samples.last());
        let varies = ends.is_some_and(|(&first, &last)| texts[first].ids.len() > texts[last].ids.len());
        samples.truncate(batch);
        Self { samples, varies }
    }

    /// Sequences and tokens of each.
    pub(super) fn size(&self, texts: &[Text]) -> [i64; 2] {
        let longest = self.samples.first().map_or(0, |&i| texts[i].ids.len());
        [self.samples.len() as i64, longest as i64]
    }

    /// Its ids on a device.
    pub(super) fn ids(&self, texts: &[Text], device: Device) -> Tensor {
        place(&pad_rows(&self.samples.iter().map(|&i| texts[i].ids.as_slice()).collect::<Vec<_>>()), device)
    }

    /// Does the work of the largest batch on a GPU. Smaller ones cut the memory of that into pieces that may not fit the next
    /// large one, so where there are any, some is set by for that.
    pub(super) fn rehearse(&self, device: Device, work: impl FnOnce()) {
        if !device.is_cuda() || self.samples.is_empty() {
            return;
        }
        let reserved = || {
            let counters = instrument::allocator(device).and_then(|allocator| allocator.counters().ok());
            counters.map_or(0, |counters| counters.reserved_bytes)
        };
        let _alone = alone();
        let before = reserved();
        work();
        if self.varies {
            let spare = (reserved().saturating_sub(before) / SPARE).next_multiple_of(PIECE).max(2 * PIECE);
            set_by(1, &[spare.cast_signed()], (Kind::Uint8, device));
        }
    }
}

/// This part of what the largest batch needs is set by.
const SPARE: u64 = 2;
/// Bytes of the allocator's own pieces.
const PIECE: u64 = 20 << 20;

/// One lane at a time rehearses while it holds this: what several hold for a moment must not add up.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    // Nothing is kept in it.
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes memory for so many tensors at the same time, and gives it back to the allocator; at most half of what the device has
/// left, since others need some too. Where that is not enough, an allocator that must ask the device later is slow, and not
/// wrong.
pub(super) fn set_by(count: usize, shape: &[i64], (kind, device): (Kind, Device)) {
    if device.is_cuda() {
        let bytes = shape.iter().product::<i64>().unsigned_abs() as usize * kind.elt_size_in_bytes();
        let count = count.min(within(free_memory(device).unwrap_or_default(), bytes));
        let _held: Vec<Tensor> = (0..count).map_while(|_| Tensor::f_empty(shape, (kind, device)).ok()).collect();
    }
}

/// How many of so many bytes half of the free ones hold.
fn within(free: usize, bytes: usize) -> usize {
    free / 2 / bytes.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_batch_is_that_of_the_longest_texts() {
        let text = |length| Text { ids: vec![1; length], ..Text::default() };
        let texts = [3, 9, 5, 9].map(text);
        let largest = Largest::of(&texts, 3);
        assert_eq!((largest.samples.clone(), largest.size(&texts), largest.varies), (vec![1, 3, 2], [3, 9], true));
        assert_eq!(largest.ids(&texts, Device::Cpu).size(), [3, 9]);
        let alike = [text(4), text(4)];
        let largest = Largest::of(&alike, 8);
        assert_eq!((largest.size(&alike), largest.varies), ([2, 4], false));
        assert_eq!(Largest::of(&[], 2).size(&[]), [0, 0]);
    }

    #[test]
    fn half_of_what_is_free_is_left_to_others() {
        assert_eq!(
            [(10_000, 1_000), (10_000, 6_000), (0, 1), (8, 0)].map(|(free, bytes)| within(free, bytes)),
            [5, 0, 0, 4]
        );
    }

    #[test]
    fn on_a_cpu_nothing_is_rehearsed() {
        let texts = [Text { ids: vec![1; 4], ..Text::default() }];
        Largest::of(&texts, 1).rehearse(Device::Cpu, || panic!("it was"));
    }
}
