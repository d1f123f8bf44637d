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
    const fn nothing() -> Self {
        Self { site: 0, depth: 0, index: 0, begin: 0, not_send: PhantomData }
    }

    // Not inlined: a caller holds the test and a call, and the optimiser sees that off, nothing is left to drop.
    #[inline(never)]
    fn begin(site: &'static Site, index: u64, level: u8) -> Self {
        lane::with(|lane| lane.begin_span(site.id(), index, level)).flatten().unwrap_or(Self::nothing())
    }

    #[inline(never)]
    fn end(&self) {
        lane::with(|lane| lane.end_span(self));
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
    fn begin_span(&mut self, site: u32, index: u64, level: u8) -> Option<SpanGuard> {
        let open = self.open;
        let depth = open.depth();
        if depth > self.base && level < Level::Layers as u8 {
            return None;
        }
        if depth >= DEEPEST {
            self.too_deep();
            return None;
        }
        let begin = open.push(depth, site, || self.clock.ticks());
        Some(SpanGuard { site, depth: depth as u32, index, begin, not_send: PhantomData })
    }

    #[inline]
    fn end_span(&mut self, guard: &SpanGuard) {
        let end = self.clock.ticks();
        let depth = guard.depth as usize;
        let open = self.open;
        if open.depth() != depth + 1 || !open.holds(depth, guard.begin) {
            return self.misplaced(guard);
        }
        open.pop(depth);
        open.pop_killed(depth, self.base);
        let level = depth.saturating_sub(self.base) as u8;
        if level == 0 && self.iteration.is_some() {
            self.stats.add(guard.site, end.saturating_sub(guard.begin));
        }
        let iteration = self.iteration.unwrap_or(NONE);
        self.emit(Event::Span {
            depth: level,
            site: guard.site,
            index: guard.index,
            iteration,
            begin: guard.begin,
            end,
        });
    }

    /// A guard was dropped while spans inside it are open, or after its iteration (which has counted it).
    #[cold]
    fn misplaced(&mut self, guard: &SpanGuard) {
        if self.shared.open.holds(guard.depth as usize, guard.begin) {
            self.shared.open.kill(guard.depth as usize);
            super::hub::bump(&self.shared.misplaced, 1);
        }
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
}
