//! The whole interface without the feature `spans`: everything compiles, nothing is left of it.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dflash_timeline::record::{Kind, Severity, Totals};

use crate::{AllocatorStats, CpuReport, KernelCapture, LaneAccount, Level, Options, Result, Stat, ThreadStack};

/// Why there are no samples.
const NOT_COMPILED: &str = "this program was built without instrumentation (the feature `spans`)";

/// Keeps a guard on its thread, as with the feature.
type NotSend = PhantomData<*const ()>;

/// Records nothing: the feature `spans` is off.
#[derive(Clone, Debug, Default)]
pub struct Profiler;

impl Profiler {
    /// Starts nothing, and cannot fail.
    pub fn start(_options: Options) -> Result<Self> {
        Ok(Self)
    }

    /// A profiler that records nothing.
    #[must_use]
    pub fn disabled() -> Self {
        Self
    }

    /// A lane that records nothing.
    #[must_use]
    pub fn lane(&self, _name: &str, _device: &str) -> Lane {
        Lane
    }

    /// A counter that records nothing.
    #[must_use]
    pub fn counter(&self, _name: &str, _unit: &str) -> Counter {
        Counter
    }

    /// Does nothing.
    pub fn mark(&self, _severity: Severity, _text: &str) {}

    /// Does nothing: without iterations there is nothing to join kernels to.
    pub fn kernel_capture(&self, _capture: Arc<dyn KernelCapture>) {}

    /// Captures nothing.
    ///
    /// # Errors
    /// Always.
    pub fn capture_kernels(&self, _iterations: u64) -> std::result::Result<PathBuf, String> {
        Err("nothing is recorded: this program was built without the feature `spans`".to_owned())
    }

    /// Does nothing.
    #[inline(always)]
    pub fn constant(&self, _name: &str, _unit: &str, _value: f64) {}

    /// Requests that never come.
    #[must_use]
    pub fn requests(&self) -> Requests {
        Requests
    }

    /// `None`: nothing can fail.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        None
    }

    /// Samples nothing, and says so.
    pub fn cpu_start(&self, _hz: u32) -> std::result::Result<(), String> {
        Err(NOT_COMPILED.to_owned())
    }

    /// Nothing was sampled.
    pub fn cpu_stop(&self) -> std::result::Result<CpuReport, String> {
        Err(NOT_COMPILED.to_owned())
    }

    /// Samples nothing, and says so.
    pub fn pprof_start(&self, _hz: u32) -> std::result::Result<(), String> {
        Err(NOT_COMPILED.to_owned())
    }

    /// Nothing was sampled, and nothing is written.
    pub fn pprof_stop(&self, _file: &Path) -> std::result::Result<CpuReport, String> {
        Err(NOT_COMPILED.to_owned())
    }

    /// Asks no thread, and says so.
    pub fn stacks(&self) -> std::result::Result<Vec<ThreadStack>, String> {
        Err(NOT_COMPILED.to_owned())
    }

    /// Totals of nothing.
    pub fn finish(&self) -> Totals {
        Totals::default()
    }

    /// No lane recorded anything.
    #[must_use]
    pub fn lanes(&self) -> Vec<LaneAccount> {
        Vec::new()
    }
}

/// No GPU is asked.
#[must_use]
pub fn gpu_details() -> Vec<crate::timeline::GpuDetails> {
    Vec::new()
}

/// Requests that never come.
#[derive(Clone, Debug, Default)]
pub struct Requests;

impl Requests {
    /// Never.
    #[inline(always)]
    #[must_use]
    pub fn take_checkpoint(&self) -> bool {
        false
    }

    /// Does nothing.
    pub fn checkpoint_written(&self, _outcome: std::result::Result<PathBuf, String>) {}

    /// Never.
    #[inline(always)]
    #[must_use]
    pub fn stop(&self) -> bool {
        false
    }
}

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
