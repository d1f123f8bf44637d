//! Records in the order of time, out of a stream in which they come nearly so.

use dflash_timeline::order;

/// Records that are kept back: threads write what they have gathered every quarter of a second, one after the other.
const KEPT: usize = 1 << 16;

/// Sorts by time what comes at most 65,536 records late. Each rank has a stream, and comes after the one before.
#[derive(Debug)]
pub(crate) struct Sorted<T> {
    waiting: Vec<(i64, T)>,
    rank: u32,
}

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self { waiting: Vec::new(), rank: 0 }
    }
}

impl<T> Sorted<T> {
    /// Takes a record of a rank, and hands those that can be no later to `take`.
    #[inline]
    pub(crate) fn push(&mut self, rank: u32, time_ns: i64, item: T, take: impl FnMut(T)) {
        if self.waiting.len() >= 2 * KEPT || (rank != self.rank && !self.waiting.is_empty()) {
            let kept = if rank == self.rank { KEPT } else { 0 };
            self.hand_over(kept, take);
        }
        self.rank = rank;
        self.waiting.push((time_ns, item));
    }

    /// Hands all that is left to `take`.
    pub(crate) fn finish(&mut self, take: impl FnMut(T)) {
        self.hand_over(0, take);
    }

    #[cold]
    fn hand_over(&mut self, kept: usize, mut take: impl FnMut(T)) {
        order::sort(&mut self.waiting, |(time_ns, _)| *time_ns);
        let ripe = self.waiting.len().saturating_sub(kept);
        self.waiting.drain(..ripe).for_each(|(_, item)| take(item));
    }
}

#[cfg(test)]
mod tests {
    use super::{KEPT, Sorted};

    #[test]
    fn what_comes_late_is_put_in_its_place() {
        let (mut sorted, mut seen) = (Sorted::default(), Vec::new());
        let times = |rank: i64| (0..3 * KEPT as i64).map(move |at| (at ^ 0x3ff) * 10 + rank);
        for rank in 0..2 {
            times(rank).for_each(|time| sorted.push(rank as u32, time, time, |time| seen.push(time)));
        }
        sorted.finish(|time| seen.push(time));
        let (first, second) = seen.split_at(3 * KEPT);
        assert!(first.is_sorted() && second.is_sorted());
        assert!(first.iter().all(|time| time % 10 == 0) && second.iter().all(|time| time % 10 == 1));
    }
}
