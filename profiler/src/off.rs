//! The whole interface without the feature `spans`: everything compiles, nothing is left of it.

mod profiler;

use std::marker::PhantomData;
use std::time::Duration;

use dflash_timeline::record::Kind;

use crate::{AllocatorStats, Level, Stat};
pub use profiler::{Profiler, Requests, gpu_details};

/// Keeps a guard on its thread, as with the feature.
type NotSend = PhantomData<*const ()>;

/// A lane that records nothing.
#[derive(Debug)]
pub struct Lane;

impl Lane {
    /// Looks at no allocator.
    pub fn allocator(self, _stats: Box<dyn AllocatorStats>) -> Self {
        self
    }

    /// Does nothing.
    pub fn enter(self) -> LaneGuard {
        LaneGuard(PhantomData)
    }
}

/// Does nothing when dropped.
#[derive(Debug)]
#[must_use = "the thread leaves its lane when the guard is dropped"]
pub struct LaneGuard(NotSend);

/// A counter that records nothing.
#[derive(Clone, Debug)]
pub struct Counter;

impl Counter {
    /// Does nothing.
    #[inline(always)]
    pub fn record(&self, _value: f64) {}
}

/// Does nothing when dropped.
#[derive(Debug)]
#[must_use = "a span ends when its guard is dropped"]
pub struct SpanGuard(NotSend);

impl SpanGuard {
    /// What [`span!`](crate::span) gives.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn nothing() -> Self {
        Self(PhantomData)
    }
}

/// Does nothing when dropped; it still borrows the stream, as with the feature.
#[derive(Debug)]
#[must_use = "a span ends when its guard is dropped"]
pub struct DeviceSpanGuard<'a>(PhantomData<&'a ()>, NotSend);

impl<'a> DeviceSpanGuard<'a> {
    /// What [`span!`](crate::span) gives for a stream, which the function that is never called says the type of.
    #[doc(hidden)]
    #[inline(always)]
    pub const fn nothing<S: crate::StreamArgument<'a>>(_stream: &impl FnOnce() -> S) -> Self {
        Self(PhantomData, PhantomData)
    }
}

/// Does nothing when dropped.
#[derive(Debug)]
#[must_use = "an iteration ends when its guard is dropped"]
pub struct IterationGuard(NotSend);

impl IterationGuard {
    /// Does nothing.
    #[inline(always)]
    pub fn tokens(&self, _tokens: u64) {}

    /// Does nothing.
    #[inline(always)]
    pub fn kind(&self, _kind: Kind) {}
}

/// A guard that records nothing.
#[inline(always)]
pub fn begin_iteration(_kind: Kind) -> IterationGuard {
    IterationGuard(PhantomData)
}

/// Does nothing.
#[inline(always)]
pub fn flow_put(_id: u64) {}

/// Does nothing.
#[inline(always)]
pub fn flow_take(_id: u64) {}

/// Does nothing.
#[inline(always)]
pub fn set_level(_level: Level) {}

/// Always [`Level::Off`].
#[inline(always)]
#[must_use]
pub fn level() -> Level {
    Level::Off
}

/// Nothing was recorded, so there is nothing to take.
#[inline(always)]
#[must_use]
pub fn take_stats() -> Vec<Stat> {
    Vec::new()
}

/// None: spans are compiled out.
#[inline(always)]
#[must_use]
pub fn open_span() -> Option<&'static str> {
    None
}

/// Does nothing.
#[inline(always)]
pub fn add_time(_name: &'static str, _duration: Duration) {}

/// Times what follows, up to the end of the guard's scope; compiled out, since the feature `spans` is off.
#[macro_export]
macro_rules! span {
    ($name:literal) => {
        $crate::SpanGuard::nothing()
    };
    ($name:literal, index = $index:expr) => {{
        // Never called: it only keeps what the index is made of from being "unused".
        let _ = || $index;
        $crate::SpanGuard::nothing()
    }};
    ($name:literal, $stream:expr) => {
        $crate::DeviceSpanGuard::nothing(&|| $stream)
    };
    ($name:literal, $stream:expr, index = $index:expr) => {{
        let _ = || $index;
        $crate::DeviceSpanGuard::nothing(&|| $stream)
    }};
}
