//! A lane: one worker's thread of work. Made anywhere, entered by the thread that works.

mod calls;

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtrb::{Producer, RingBuffer};

use super::allocator::{AllocatorWatch, Charged};
use super::clock::Clock;
use super::cost::Schedule;
use super::cpu::slots;
use super::device::DeviceLane;
use super::event::Event;
use super::hub::{Hub, LaneShared, NewLane, bump, lock};
use super::open::{DEEPEST, OpenSpans};
use super::samplers::LaneThread;
use super::stats::Stats;
use crate::AllocatorStats;

pub use calls::{add_time, flow_put, flow_take, take_stats};

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
    /// Depth from which on spans are refused, at the levels `stages` and `layers`.
    pub limits: [usize; 2],
    pub stats: Stats,
    pub schedule: Schedule,
    pub device: Option<Box<DeviceLane>>,
    pub allocator: Option<Box<AllocatorWatch>>,
    /// Depth of the spans around which the allocator is looked at; none has [`UNWATCHED`].
    pub watched: usize,
}

/// No span is so deep.
pub(crate) const UNWATCHED: usize = usize::MAX;

/// The limits of a lane at the begin of an iteration, or outside of all, with so many spans open.
pub(crate) fn limits(base: usize) -> [usize; 2] {
    [(base + 1).min(DEEPEST), DEEPEST]
}

impl Lane {
    /// A lane, and the end of it where its records come out.
    pub(crate) fn new(hub: &Arc<Hub>, name: &str, device: &str, ring: usize, begun: Arc<AtomicU64>) -> (Self, NewLane) {
        let (events, consumer) = RingBuffer::new(ring);
        let shared = Arc::new(LaneShared::new(name, device));
        let end = NewLane { events: consumer, shared: Arc::clone(&shared) };
        let lane = Self(Some(Box::new(Current {
            clock: hub.clock.clone(),
            open: shared.open.open(),
            shared,
            events,
            hub: Arc::clone(hub),
            begun,
            iteration: None,
            base: 0,
            limits: limits(0),
            stats: Stats::default(),
            schedule: Schedule::new(&hub.bare, name),
            device: None,
            allocator: None,
            watched: UNWATCHED,
        })));
        (lane, end)
    }

    /// Also notes what this allocator does, stage by stage and iteration by iteration: as counters like
    /// `allocator.cuda:0.device_allocations.drafter.forward` (only where it did something), and
    /// `allocator.cuda:0.reserved`, `.active` (bytes) and `.allocations`, one reading an iteration.
    pub fn allocator(mut self, stats: Box<dyn AllocatorStats>) -> Self {
        if let Some(lane) = &mut self.0 {
            // Set again: the first name stays, since its counters may be in the stream already.
            let _ = lane.shared.allocator.set(stats.device());
            // One without counters is told of when a stage asks for them.
            let now = stats.counters().unwrap_or_default();
            let first = || Arc::new(Charged::from(&now));
            let charged = Arc::clone(lock(&lane.hub.charged).entry(stats.device()).or_insert_with(first));
            lane.allocator = Some(Box::new(AllocatorWatch::new(stats, now, charged)));
        }
        self
    }

    /// Makes the calling thread this lane's, until the guard is dropped. A lane that the thread is in already rests
    /// meanwhile.
    pub fn enter(self) -> LaneGuard {
        let entered = self.0.is_some();
        let thread = self.0.as_ref().map(|lane| LaneThread::enter(&lane.shared.name));
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
        LaneGuard { entered, before, _thread: thread, not_send: PhantomData }
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
    _thread: Option<LaneThread>,
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

/// Name of the innermost span that is open on the calling thread; `None` where none is, or none is recorded. For messages: a
/// panic hook can say what was being done.
#[cold]
#[must_use]
pub fn open_span() -> Option<&'static str> {
    with(|lane| lane.open.look().last().map(|(site, _)| super::site::name(*site))).flatten()
}

impl Current {
    /// Puts a record into the ring; a full ring drops it and counts.
    #[inline(always)]
    pub(crate) fn emit(&mut self, event: Event) {
        let emitted = self.count();
        if self.events.push(event).is_err() {
            self.drop_one();
        } else if emitted.is_multiple_of(WAKE_EVERY) {
            self.wake_if_half_full();
        }
    }

    /// Puts a record into the ring with what it has besides: both or neither.
    pub(crate) fn emit_with(&mut self, besides: Event, event: Event) {
        let emitted = self.count();
        if self.events.slots() < 2 {
            return self.drop_one();
        }
        let _ = self.events.push(besides);
        let _ = self.events.push(event);
        if emitted.is_multiple_of(WAKE_EVERY) {
            self.wake_if_half_full();
        }
    }

    #[inline]
    fn count(&self) -> u64 {
        let emitted = self.shared.emitted.load(Ordering::Relaxed) + 1;
        self.shared.emitted.store(emitted, Ordering::Relaxed);
        emitted
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
