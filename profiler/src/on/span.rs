//! The guard that [`span!`](crate::span) gives: the hot path.

use std::marker::PhantomData;

use super::event::{Event, NONE};
use super::lane::{self, Current};
use super::level;
use super::open::DEEPEST;
use super::site::Site;
use crate::Level;

/// A span that is open. It ends when the guard is dropped, on the thread that began it.
#[derive(Debug)]
#[must_use = "a span ends when its guard is dropped: bind it to a name, not to `_`"]
pub struct SpanGuard {
    /// 0: nothing is recorded.
    site: u32,
    depth: u32,
    index: u64,
    begin: u64,
    // A span belongs to the stack of its thread.
    not_send: PhantomData<*const ()>,
}

impl SpanGuard {
    /// Begins a span. Off, this is one relaxed load and a branch that is not taken.
    #[doc(hidden)]
    #[inline(always)]
    pub fn enter(site: &'static Site, index: Option<u64>) -> Self {
        let level = level::current();
        if level == Level::Off as u8 {
            return Self::nothing();
        }
        Self::begin(site, index.unwrap_or(NONE), level)
    }

    #[inline(always)]
    pub(crate) const fn nothing() -> Self {
        Self { site: 0, depth: 0, index: 0, begin: 0, not_send: PhantomData }
    }

    // Not inlined: a caller holds the test and a call, and the optimiser sees that off, nothing is left to drop.
    #[inline(never)]
    pub(crate) fn begin(site: &'static Site, index: u64, level: u8) -> Self {
        lane::with(|lane| lane.begin_span(site.id(), index, level)).flatten().unwrap_or(Self::nothing())
    }

    #[inline(never)]
    fn end(&self) {
        lane::with(|lane| lane.end_span(self));
    }

    /// Ends nothing any more: who took it over ends the span.
    pub(crate) fn disarm(&mut self) -> Self {
        std::mem::replace(self, Self::nothing())
    }

    pub(crate) fn is_recorded(&self) -> bool {
        self.site != 0
    }

    /// When it began, where it lies on its lane's stack, and what it is called.
    pub(crate) fn place(&self) -> (u64, usize, u32) {
        (self.begin, self.depth as usize, self.site)
    }
}

impl Drop for SpanGuard {
    #[inline(always)]
    fn drop(&mut self) {
        if self.site != 0 {
            self.end();
        }
    }
}

impl Current {
    #[inline]
    pub(crate) fn begin_span(&mut self, site: u32, index: u64, level: u8) -> Option<SpanGuard> {
        let depth = self.open.depth();
        if depth >= self.limits[usize::from(level >= Level::Layers as u8)] {
            // Not at this level, or in a bare iteration; or too deep, which is a loss.
            if depth >= DEEPEST && !self.is_bare() && level >= Level::Layers as u8 {
                self.too_deep();
            }
            return None;
        }
        if depth == self.watched {
            self.allocator_before_stage();
        }
        Some(self.push_span(depth, site, index))
    }

    /// Puts a span that may be recorded on the stack.
    #[inline]
    pub(crate) fn push_span(&mut self, depth: usize, site: u32, index: u64) -> SpanGuard {
        let begin = self.open.push(depth, site, || self.clock.ticks());
        SpanGuard { site, depth: depth as u32, index, begin, not_send: PhantomData }
    }

    #[inline]
    fn end_span(&mut self, guard: &SpanGuard) {
        let end = self.clock.ticks();
        if let Some(level) = self.close_span(guard, end) {
            self.emit(self.record_of(guard, level, end));
            if guard.depth as usize == self.watched {
                self.allocator_after_stage(guard.site);
            }
        }
    }

    /// Takes a span off the stack. Its level below the iteration; `None` if it was not where it should be.
    #[inline]
    pub(crate) fn close_span(&mut self, guard: &SpanGuard, end: u64) -> Option<u8> {
        let depth = guard.depth as usize;
        let open = self.open;
        if open.depth() != depth + 1 || !open.holds(depth, guard.begin) {
            self.misplaced(guard);
            return None;
        }
        open.pop(depth);
        open.pop_killed(depth, self.base);
        let level = depth.saturating_sub(self.base) as u8;
        if level == 0 && self.iteration.is_some() {
            self.stats.add(guard.site, end.saturating_sub(guard.begin));
        }
        Some(level)
    }

    /// The record of a span that was closed. Made where it is put into the ring: a record that goes through the stack on
    /// its way costs 5 ns, since its parts are stored one by one and loaded as a whole.
    #[inline(always)]
    pub(crate) fn record_of(&self, guard: &SpanGuard, level: u8, end: u64) -> Event {
        let iteration = self.iteration.unwrap_or(NONE);
        Event::Span { depth: level, site: guard.site, index: guard.index, iteration, begin: guard.begin, end }
    }

    /// A guard was dropped while spans inside it are open, or after its iteration (which has counted it).
    #[cold]
    fn misplaced(&mut self, guard: &SpanGuard) {
        if self.holds(guard) {
            self.open.kill(guard.depth as usize);
            super::hub::bump(&self.shared.misplaced, 1);
        }
    }

    /// Whether a span is open on this very lane.
    pub(crate) fn holds(&self, guard: &SpanGuard) -> bool {
        self.open.holds(guard.depth as usize, guard.begin)
    }
}

/// Times what follows, up to the end of the guard's scope:
///
/// ```
/// # use dflash_profiler::span;
/// # fn layer(_: usize) {}
/// let _span = span!("drafter.forward");
/// for i in 0..3 {
///     let _span = span!("drafter.layer", index = i);
///     layer(i);
/// }
/// ```
///
/// Directly in an iteration (or outside of every one) it is recorded from the level `stages` on, inside another span at
/// the level `layers`. Off it costs one relaxed load and a branch; without the feature `spans`, nothing.
///
/// With a stream (anything that implements [`DeviceStream`](crate::DeviceStream), or an `Option` of it: on the CPU a loop
/// has none) the time between begin and end on that stream is taken as well, without waiting for it. The guard borrows
/// the stream:
///
/// ```
/// # use dflash_profiler::{sim::{SimClock, SimDevice}, span};
/// # let stream = Some(SimDevice::new(0, SimClock::real()).stream(0));
/// let _span = span!("target.forward", &stream);
/// let _span = span!("target.layer", &stream, index = 3);
/// ```
///
/// A guard must be dropped on its own thread, which the compiler checks:
///
/// ```compile_fail
/// let span = dflash_profiler::span!("a");
/// std::thread::spawn(move || drop(span));
/// ```
#[macro_export]
macro_rules! span {
    ($name:literal) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        $crate::SpanGuard::enter(&SITE, ::core::option::Option::None)
    }};
    ($name:literal, index = $index:expr) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        $crate::SpanGuard::enter(&SITE, ::core::option::Option::Some($index as u64))
    }};
    ($name:literal, $stream:expr) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        $crate::DeviceSpanGuard::enter(&SITE, ::core::option::Option::None, $stream)
    }};
    ($name:literal, $stream:expr, index = $index:expr) => {{
        static SITE: $crate::Site = $crate::Site::new($name);
        $crate::DeviceSpanGuard::enter(&SITE, ::core::option::Option::Some($index as u64), $stream)
    }};
}
