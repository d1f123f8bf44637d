//! Iterations: one pass of a lane's loop, which its stages and its residue add up to.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use dflash_timeline::record::Kind;

use super::event::{Event, NONE, Pairing};
use super::hub::bump;
use super::lane::{self, Current, UNWATCHED, limits};
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
    pairing: Pairing,
    at: u64,
    cpu_ns: u64,
}

/// The limits in a bare iteration: no span is recorded.
const BARE: [usize; 2] = [0, 0];

/// Begins the next iteration of the calling thread's lane; without a lane the guard records nothing.
///
/// An iteration inside another one is not recorded, and counted as misplaced. Some iterations of kind `Train` are run
/// bare, see [`Options::bare`](crate::Options::bare): nothing in them is recorded but hand-offs, and their kind is `Bare`.
pub fn begin_iteration(kind: Kind) -> IterationGuard {
    IterationGuard::begin(kind, level::current() != 0)
}

impl IterationGuard {
    pub(crate) fn begin(kind: Kind, on: bool) -> Self {
        let begun = lane::with(|lane| lane.begin_iteration(kind, on)).flatten();
        Self { begun, kind: Cell::new(kind), tokens: Cell::new(NONE), not_send: PhantomData }
    }

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
    fn begin_iteration(&mut self, kind: Kind, on: bool) -> Option<Begun> {
        if self.iteration.is_some() {
            bump(&self.shared.misplaced, 1);
            return None;
        }
        // Counted even while off, so that a number is always the pass of the loop.
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        if !on {
            return None;
        }
        let pairing = if kind == Kind::Train { self.schedule.at(number) } else { Pairing::Alone };
        self.iteration = Some(number);
        self.shared.pass.begin(number, kind);
        self.shared.open.set_iteration(self.iteration);
        self.base = self.shared.open.depth();
        if pairing.is_bare() {
            self.limits = BARE;
            return Some(Begun { number, pairing, cpu_ns: NONE, at: self.clock.ticks() });
        }
        self.limits = limits(self.base);
        if self.allocator.is_some() {
            self.watched = self.base;
            self.allocator_begin();
        }
        let cpu_ns = dflash_sys::thread_cpu_ns();
        Some(Begun { number, pairing, cpu_ns, at: self.clock.ticks() })
    }

    fn end_iteration(&mut self, begun: Begun, kind: Kind, tokens: u64) {
        let end = self.clock.ticks();
        if self.iteration != Some(begun.number) {
            return;
        }
        let bare = begun.pairing.is_bare();
        let cpu_ns = if bare { NONE } else { dflash_sys::thread_cpu_ns().saturating_sub(begun.cpu_ns) };
        if self.shared.open.depth() > self.base {
            let cut = self.shared.open.cut(self.base);
            bump(&self.shared.misplaced, cut);
            if let Some(device) = self.device.as_mut().filter(|_| self.base == 0) {
                device.close_all();
            }
        }
        if self.allocator.is_some() && !bare {
            self.allocator_end();
        }
        self.iteration = None;
        self.shared.pass.end(begun.number);
        self.shared.open.set_iteration(None);
        self.base = 0;
        (self.limits, self.watched) = (limits(0), UNWATCHED);
        // What the loop says comes first: a bare pass that wrote a checkpoint is one that wrote a checkpoint.
        let kind = if bare && kind == Kind::Train { Kind::Bare } else { kind };
        self.stats.end_iteration(kind, end.saturating_sub(begun.at));
        let (number, begin, pairing) = (begun.number, begun.at, begun.pairing);
        self.emit_with(Event::Usage { cpu_ns, tokens }, Event::Iteration { kind, pairing, number, begin, end });
    }

    /// Whether the iteration that runs is bare.
    pub(crate) fn is_bare(&self) -> bool {
        self.limits == BARE
    }
}
