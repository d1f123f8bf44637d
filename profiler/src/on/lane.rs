//! A lane: one worker's thread of work. Made anywhere, entered by the thread that works.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use dflash_timeline::record::FlowEnd;
use rtrb::Producer;

use super::clock::Clock;
use super::cpu::slots;
use super::event::Event;
use super::hub::{Hub, LaneShared, bump};
use super::level;
use super::open::OpenSpans;
use super::stats::Stats;
use crate::Stat;

/// Records between two looks at whether the writer must be woken before its time; far below a ring.
const WAKE_EVERY: u64 = 1024;

thread_local! {
    static CURRENT: RefCell<Option<Box<Current>>> = const { RefCell::new(None) };
}

/// A thread of work that has not begun yet. Send it to its thread and [`enter`](Self::enter) it there.
#[derive(Debug)]
#[must_use = "a lane records nothing before a thread enters it"]
pub struct Lane(pub(crate) Option<Box<Current>>);

/// A lane as its own thread sees it.
#[derive(Debug)]
pub(crate) struct Current {
    pub clock: Clock,
    pub shared: Arc<LaneShared>,
    /// The shared ones, for the hot path.
    pub open: &'static OpenSpans,
    pub events: Producer<Event>,
    pub hub: Arc<Hub>,
    /// Iterations begun so far.
    pub begun: Arc<AtomicU64>,
    /// Number of the iteration that runs.
    pub iteration: Option<u64>,
    /// Spans that were open when it began.
    pub base: usize,
    pub stats: Stats,
}

impl Lane {
    /// Makes the calling thread this lane's, until the guard is dropped. A lane that the thread is in already rests
    /// meanwhile.
    pub fn enter(self) -> LaneGuard {
        let entered = self.0.is_some();
        let before = match self.0 {
            Some(lane) => {
                lane.shared.open.enter();
                CURRENT.try_with(|current| current.replace(Some(lane))).ok().flatten()
            }
            None => None,
        };
        if let Some(before) = &before {
            before.shared.open.rest();
        }
        LaneGuard { entered, before, not_send: PhantomData }
    }
}

/// Leaves the lane when dropped, also by a panic: what was recorded is the writer's from then on.
///
/// ```compile_fail
/// let lane = dflash_profiler::Profiler::disabled().lane("a", "cpu").enter();
/// std::thread::spawn(move || drop(lane));
/// ```
#[derive(Debug)]
#[must_use = "the thread leaves its lane when the guard is dropped"]
pub struct LaneGuard {
    entered: bool,
    before: Option<Box<Current>>,
    not_send: PhantomData<*const ()>,
}

impl Drop for LaneGuard {
    fn drop(&mut self) {
        if !self.entered {
            return;
        }
        let before = self.before.take();
        match &before {
            Some(before) => before.shared.open.enter(),
            None => slots::leave(),
        }
        let left = CURRENT
            .try_with(|current| current.try_borrow_mut().ok().and_then(|mut c| std::mem::replace(&mut *c, before)));
        if let Ok(Some(lane)) = left {
            lane.shared.open.rest();
            let cut = lane.shared.open.cut(0);
            bump(&lane.shared.misplaced, cut);
            lane.hub.wake();
        }
    }
}

/// Runs `use_it` on the calling thread's lane, if it is in one.
#[inline(always)]
pub(crate) fn with<T>(use_it: impl FnOnce(&mut Current) -> T) -> Option<T> {
    CURRENT
        .try_with(|current| {
            let mut current = current.try_borrow_mut().ok()?;
            current.as_deref_mut().map(use_it)
        })
        .ok()
        .flatten()
}

impl Current {
    /// Puts a record into the ring; a full ring drops it and counts.
    #[inline]
    pub(crate) fn emit(&mut self, event: Event) {
        let emitted = self.shared.emitted.load(Ordering::Relaxed) + 1;
        self.shared.emitted.store(emitted, Ordering::Relaxed);
        if self.events.push(event).is_err() {
            self.drop_one();
        } else if emitted.is_multiple_of(WAKE_EVERY) {
            self.wake_if_half_full();
        }
    }

    #[cold]
    fn drop_one(&mut self) {
        bump(&self.shared.dropped, 1);
    }

    #[cold]
    fn wake_if_half_full(&mut self) {
        if self.events.slots() < self.events.buffer().capacity() / 2 {
            self.hub.wake();
        }
    }

    /// A span that is lost before it began.
    #[cold]
    pub(crate) fn too_deep(&mut self) {
        bump(&self.shared.emitted, 1);
        bump(&self.shared.dropped, 1);
    }
}

/// Notes that a hand-off was put on its way by this lane.
pub fn flow_put(id: u64) {
    flow(id, FlowEnd::Put);
}

/// Notes that a hand-off was taken by this lane; `id` is the one it was put with.
pub fn flow_take(id: u64) {
    flow(id, FlowEnd::Take);
}

fn flow(id: u64, end: FlowEnd) {
    if level::current() != 0 {
        with(|lane| {
            let at = lane.clock.ticks();
            lane.emit(Event::Flow { end, id, at });
        });
    }
}

/// What the calling thread's lane spent on each stage since the last call: stages in the order of their first use, then
/// `residue` and `total`. Only iterations of kind `Train` count; empty if there were none.
#[must_use]
pub fn take_stats() -> Vec<Stat> {
    with(|lane| lane.stats.take(&lane.clock)).unwrap_or_default()
}
