//! The iteration that a lane is in, for whoever looks at it from outside.

use std::sync::atomic::{AtomicU64, Ordering};

use dflash_timeline::record::Kind;

/// One store when an iteration begins and two when it ends; only the lane's own thread writes.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// 0: none; else the iteration's number plus 1, and its kind in the lowest three bits.
    running: AtomicU64,
    /// Number of the one that ended last, plus 1.
    ended: AtomicU64,
}

impl Pass {
    /// An iteration begins.
    #[inline]
    pub(crate) fn begin(&self, number: u64, kind: Kind) {
        self.running.store((number + 1) << 3 | kind as u64, Ordering::Release);
    }

    /// It ended.
    #[inline]
    pub(crate) fn end(&self, number: u64) {
        self.running.store(0, Ordering::Release);
        self.ended.store(number + 1, Ordering::Release);
    }

    /// Whether the iteration with this number, or a later one, has ended.
    pub(crate) fn has_ended(&self, number: u64) -> bool {
        self.ended.load(Ordering::Acquire) > number
    }

    /// Number of the iteration that runs, and what it began as.
    pub(crate) fn look(&self) -> Option<(u64, Kind)> {
        const KINDS: [Kind; 6] = [Kind::Train, Kind::Warmup, Kind::Checkpoint, Kind::Eval, Kind::Bare, Kind::Drain];
        let packed = self.running.load(Ordering::Acquire);
        let kind = KINDS.into_iter().find(|kind| *kind as u64 == packed & 7);
        (packed >> 3).checked_sub(1).map(|number| (number, kind.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::{Kind, Pass};

    #[test]
    fn what_goes_in_comes_out() {
        let pass = Pass::default();
        assert_eq!(pass.look(), None);
        for kind in [Kind::Train, Kind::Warmup, Kind::Checkpoint, Kind::Eval, Kind::Bare, Kind::Drain] {
            for number in [0, 1, 7, u64::from(u32::MAX)] {
                pass.begin(number, kind);
                assert_eq!(pass.look(), Some((number, kind)));
            }
        }
        assert!(!pass.has_ended(0));
        pass.end(4);
        assert!(pass.has_ended(4) && !pass.has_ended(5));
        assert_eq!(pass.look(), None);
    }
}
