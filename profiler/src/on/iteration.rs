//! Iterations: one pass of a lane's loop, which its stages and its residue add up to.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use dflash_timeline::record::Kind;

use super::event::{Event, NONE};
use super::hub::bump;
use super::lane::{self, Current};
use super::level;

/// An iteration that runs. It ends when the guard is dropped, on its own thread:
///
/// ```compile_fail
/// let iteration = dflash_profiler::begin_iteration(dflash_profiler::Kind::Train);
/// std::thread::spawn(move || drop(iteration));
/// ```
#[derive(Debug)]
#[must_use = "an iteration ends when its guard is dropped: bind it to a name, not to `_`"]
pub struct IterationGuard {
    /// `None`: nothing is recorded.
    begun: Option<Begun>,
    kind: Cell<Kind>,
    tokens: Cell<u64>,
    not_send: PhantomData<*const ()>,
}

#[derive(Clone, Copy, Debug)]
struct Begun {
    number: u64,
    at: u64,
    cpu_ns: u64,
}

/// Begins the next iteration of the calling thread's lane; without a lane the guard records nothing.
///
/// An iteration inside another one is not recorded, and counted as misplaced.
pub fn begin_iteration(kind: Kind) -> IterationGuard {
    let begun = lane::with(Current::begin_iteration).flatten();
    IterationGuard { begun, kind: Cell::new(kind), tokens: Cell::new(NONE), not_send: PhantomData }
}

impl IterationGuard {
    /// Says how many context tokens it processed, without padding.
    pub fn tokens(&self, tokens: u64) {
        self.tokens.set(tokens);
    }

    /// Says what it turned out to be, e.g. a pass that wrote a checkpoint.
    pub fn kind(&self, kind: Kind) {
        self.kind.set(kind);
    }
}

impl Drop for IterationGuard {
    fn drop(&mut self) {
        if let Some(begun) = self.begun {
            lane::with(|lane| lane.end_iteration(begun, self.kind.get(), self.tokens.get()));
        }
    }
}

impl Current {
    fn begin_iteration(&mut self) -> Option<Begun> {
        if self.iteration.is_some() {
            bump(&self.shared.misplaced, 1);
            return None;
        }
        // Counted even while off, so that a number is always the pass of the loop.
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        if level::current() == 0 {
            return None;
        }
        self.iteration = Some(number);
        self.shared.open.set_iteration(self.iteration);
        self.base = self.shared.open.depth();
        let cpu_ns = dflash_sys::thread_cpu_ns();
        Some(Begun { number, cpu_ns, at: self.clock.ticks() })
    }

    fn end_iteration(&mut self, begun: Begun, kind: Kind, tokens: u64) {
        let end = self.clock.ticks();
        if self.iteration != Some(begun.number) {
            return;
        }
        let cpu_ns = dflash_sys::thread_cpu_ns().saturating_sub(begun.cpu_ns);
        if self.shared.open.depth() > self.base {
            let cut = self.shared.open.cut(self.base);
            bump(&self.shared.misplaced, cut);
        }
        self.iteration = None;
        self.shared.open.set_iteration(None);
        self.base = 0;
        self.stats.end_iteration(kind, end.saturating_sub(begun.at));
        self.emit(Event::Iteration { kind, number: begun.number, begin: begun.at, end, cpu_ns, tokens });
    }
}
