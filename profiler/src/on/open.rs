//! The spans that are open on a lane: its own thread pushes and pops, the writer looks at them meanwhile.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Spans that may be open at once; deeper ones are dropped and counted.
pub(crate) const DEEPEST: usize = 64;

/// One writer (the lane's thread), any readers, no locks.
#[derive(Debug)]
pub(crate) struct OpenSpans {
    depth: AtomicUsize,
    entries: [Entry; DEEPEST],
}

#[derive(Debug)]
struct Entry {
    /// Ticks; 0: the entry is being changed, or its span was dropped out of order.
    begin: AtomicU64,
    site: AtomicU32,
}

impl OpenSpans {
    pub(crate) const fn new() -> Self {
        let entries = [const { Entry { begin: AtomicU64::new(0), site: AtomicU32::new(0) } }; DEEPEST];
        Self { depth: AtomicUsize::new(0), entries }
    }

    /// How many are open; exact on the lane's own thread.
    #[inline]
    pub(crate) fn depth(&self) -> usize {
        self.depth.load(Ordering::Acquire)
    }

    /// Opens a span at `depth`, which is [`depth`](Self::depth) and below [`DEEPEST`]. `now` is read last, so that this
    /// is not part of the span.
    #[inline]
    pub(crate) fn push(&self, depth: usize, site: u32, now: impl FnOnce() -> u64) -> u64 {
        let Some(entry) = self.entries.get(depth) else { return 0 };
        // A reader takes an entry for whole if it finds the same begin, not 0, before and after the site: begin is 0
        // whenever the site changes, and no two spans of a lane begin at the same tick.
        entry.site.store(site, Ordering::Release);
        self.depth.store(depth + 1, Ordering::Release);
        let begin = now();
        entry.begin.store(begin, Ordering::Release);
        begin
    }

    /// Whether the span that began at `begin` is still at `depth`.
    #[inline]
    pub(crate) fn holds(&self, depth: usize, begin: u64) -> bool {
        depth < self.depth() && self.entries.get(depth).is_some_and(|e| e.begin.load(Ordering::Relaxed) == begin)
    }

    /// Closes the innermost span.
    #[inline]
    pub(crate) fn pop(&self, depth: usize) {
        self.clear(depth);
        self.depth.store(depth, Ordering::Release);
    }

    /// Marks a span that others are still open in as gone.
    #[cold]
    pub(crate) fn kill(&self, depth: usize) {
        self.clear(depth);
    }

    /// Pops what [`kill`](Self::kill) left at the top.
    #[inline]
    pub(crate) fn pop_killed(&self, mut depth: usize, base: usize) {
        while depth > base && self.entries[depth - 1].begin.load(Ordering::Relaxed) == 0 {
            depth -= 1;
            self.depth.store(depth, Ordering::Release);
        }
    }

    /// Closes everything from `depth` on. Returns how many spans that were.
    #[cold]
    pub(crate) fn cut(&self, depth: usize) -> u64 {
        let live = self.entries[depth..self.depth()].iter().filter(|e| e.begin.load(Ordering::Relaxed) != 0).count();
        (depth..self.depth()).rev().for_each(|inner| self.pop(inner));
        live as u64
    }

    /// Site and begin of what is open, outermost first; what changes this very moment is left out.
    pub(crate) fn look(&self) -> Vec<(u32, u64)> {
        self.whole().collect()
    }

    /// As [`look`](Self::look), without allocating: for signal handlers. What lies deeper than there is room for is left
    /// out. Returns how many there are.
    pub(crate) fn copy(&self, sites: &mut [u32], begins: &mut [u64]) -> usize {
        let places = sites.iter_mut().zip(begins);
        self.whole().zip(places).map(|(from, (site, begin))| (*site, *begin) = from).count()
    }

    /// Whether it holds for the site of one of them. For signal handlers, too.
    pub(crate) fn any(&self, holds: impl Fn(u32) -> bool) -> bool {
        self.whole().any(|(site, _)| holds(site))
    }

    fn whole(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        let whole = |entry: &Entry| {
            let begin = entry.begin.load(Ordering::Acquire);
            let site = entry.site.load(Ordering::Acquire);
            (begin != 0 && entry.begin.load(Ordering::Acquire) == begin).then_some((site, begin))
        };
        self.entries.iter().take(self.depth()).filter_map(whole)
    }

    #[inline]
    fn clear(&self, depth: usize) {
        if let Some(entry) = self.entries.get(depth) {
            entry.begin.store(0, Ordering::Release);
        }
    }
}
