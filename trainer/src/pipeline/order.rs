//! The order in which samples are trained on: shuffled each epoch, batches of like length.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

/// Batches that are sorted by length together: enough to pad little, few enough to stay random.
const POOL: usize = 16;

/// Endless batches of sample indices, the same for the same seed.
#[derive(Debug)]
pub(super) struct Order {
    lengths: Vec<usize>,
    batch: usize,
    rng: StdRng,
    waiting: Vec<Vec<usize>>,
}

impl Order {
    pub(super) fn new(lengths: Vec<usize>, batch: usize, seed: u64) -> Self {
        Self { lengths, batch, rng: StdRng::seed_from_u64(seed), waiting: Vec::new() }
    }

    pub(super) fn next(&mut self) -> Vec<usize> {
        if self.waiting.is_empty() {
            self.begin_epoch();
        }
        self.waiting.pop().unwrap_or_default()
    }

    /// Goes on behind the first `batches` batches.
    pub(super) fn skip(&mut self, batches: u64) {
        for _ in 0..batches / self.epoch() {
            self.begin_epoch();
        }
        if batches >= self.epoch() {
            self.waiting.clear();
        }
        for _ in 0..batches % self.epoch() {
            let _ = self.next();
        }
    }

    /// Batches of an epoch.
    pub(super) fn epoch(&self) -> u64 {
        (self.lengths.len().div_ceil(self.batch) as u64).max(1)
    }

    fn begin_epoch(&mut self) {
        let mut samples: Vec<usize> = (0..self.lengths.len()).collect();
        samples.shuffle(&mut self.rng);
        for pool in samples.chunks_mut(POOL * self.batch) {
            pool.sort_by_key(|&i| self.lengths[i]);
        }
        self.waiting = samples.chunks(self.batch).map(<[usize]>::to_vec).collect();
        self.waiting.shuffle(&mut self.rng);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_has_every_sample_once_and_the_next_one_another_order() {
        let mut order = Order::new((0..103).collect(), 4, 7);
        let mut epoch = || (0..26).map(|_| order.next()).collect::<Vec<_>>();
        let (first, second) = (epoch(), epoch());
        for epoch in [&first, &second] {
            let mut all: Vec<_> = epoch.iter().flatten().copied().collect();
            all.sort_unstable();
            assert_eq!(all, (0..103).collect::<Vec<_>>());
        }
        assert_ne!(first, second);
        let mut again = Order::new((0..103).collect(), 4, 7);
        assert_eq!(first[0], again.next());
    }

    #[test]
    fn skipping_is_as_good_as_taking() {
        let order = || Order::new((0..103).collect(), 4, 7);
        for skipped in [0, 1, 25, 26, 27, 52, 60] {
            let (mut taken, mut jumped) = (order(), order());
            for _ in 0..skipped {
                let _ = taken.next();
            }
            jumped.skip(skipped);
            assert_eq!(
                (0..30).map(|_| taken.next()).collect::<Vec<_>>(),
                (0..30).map(|_| jumped.next()).collect::<Vec<_>>()
            );
        }
    }
}
