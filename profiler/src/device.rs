//! What the profiler needs of a device, as traits: a training loop implements them for its streams, its allocator and its
//! kernel tracer, so that this crate never sees the framework.

use std::any::Any;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

/// Which stream of which device: spans on the same key ran one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StreamKey {
    /// Index of the device, as the framework counts them (`cuda:1` has 1).
    pub device: i16,
    /// The framework's id of the stream; unique within the device.
    pub stream: i64,
}

/// A call to the device failed, in the device's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DeviceError(pub String);

/// A stream of work on a device.
pub trait DeviceStream: Debug + Send + Sync {
    /// Which one it is. Called for each span: must be cheap.
    fn key(&self) -> StreamKey;

    /// A timed event of the stream's device, not recorded yet.
    ///
    /// # Errors
    /// The device gave none.
    fn new_event(&self) -> Result<Box<dyn DeviceEvent>, DeviceError>;

    /// Puts `event`, which came from a stream of the same device, behind the work that the stream has so far. Never
    /// waits. An event may be recorded again: then the earlier moment is forgotten.
    ///
    /// # Errors
    /// The event is another device's, or the device refused.
    fn record(&self, event: &mut dyn DeviceEvent) -> Result<(), DeviceError>;

    /// Another stream of the same device that nothing else uses: clock anchors are taken there, so that no work waits.
    ///
    /// # Errors
    /// The device gave none.
    fn side(&self) -> Result<Box<dyn DeviceStream>, DeviceError>;
}

/// A moment on a stream.
pub trait DeviceEvent: Debug + Send {
    /// Whether the stream has got there. Never waits. An event that was never recorded is not ready.
    ///
    /// # Errors
    /// The device failed; the moment is lost.
    fn ready(&self) -> Result<bool, DeviceError>;

    /// Nanoseconds from this moment to `later`, which is one of the same device; both are ready. CUDA gives f32
    /// milliseconds: exact to 60 ns a second apart, so neighbours are compared and summed.
    ///
    /// # Errors
    /// The events are of two devices, or one is not ready.
    fn elapsed_ns(&self, later: &dyn DeviceEvent) -> Result<i64, DeviceError>;

    /// For the implementation to recognise its own events.
    fn as_any(&self) -> &dyn Any;

    /// As [`as_any`](Self::as_any), to record.
    fn as_any_mut(&mut self) -> &mut dyn Any;
}

/// What [`span!`](crate::span) takes as its stream: a reference to a stream, or to an `Option` of one. `None` (a loop on
/// the CPU has no stream) gives a host span.
pub trait StreamArgument<'a> {
    /// The stream, where there is one.
    fn stream(self) -> Option<&'a dyn DeviceStream>;
}

impl<'a, T: DeviceStream> StreamArgument<'a> for &'a T {
    #[inline(always)]
    fn stream(self) -> Option<&'a dyn DeviceStream> {
        Some(self)
    }
}

impl<'a, T: DeviceStream> StreamArgument<'a> for &'a Option<T> {
    #[inline(always)]
    fn stream(self) -> Option<&'a dyn DeviceStream> {
        self.as_ref().map(|stream| stream as &dyn DeviceStream)
    }
}

impl<'a, T: DeviceStream> StreamArgument<'a> for Option<&'a T> {
    #[inline(always)]
    fn stream(self) -> Option<&'a dyn DeviceStream> {
        self.map(|stream| stream as &dyn DeviceStream)
    }
}

impl<'a> StreamArgument<'a> for &'a dyn DeviceStream {
    #[inline(always)]
    fn stream(self) -> Option<&'a dyn DeviceStream> {
        Some(self)
    }
}

impl<'a> StreamArgument<'a> for Option<&'a dyn DeviceStream> {
    #[inline(always)]
    fn stream(self) -> Option<&'a dyn DeviceStream> {
        self
    }
}

macro_rules! forward {
    ($pointer:ident) => {
        impl<T: DeviceStream + ?Sized> DeviceStream for $pointer<T> {
            fn key(&self) -> StreamKey {
                (**self).key()
            }

            fn new_event(&self) -> Result<Box<dyn DeviceEvent>, DeviceError> {
                (**self).new_event()
            }

            fn record(&self, event: &mut dyn DeviceEvent) -> Result<(), DeviceError> {
                (**self).record(event)
            }

            fn side(&self) -> Result<Box<dyn DeviceStream>, DeviceError> {
                (**self).side()
            }
        }
    };
}

forward!(Box);
forward!(Arc);

/// Counters of a caching allocator since the process's start, and its present state. One a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllocatorCounters {
    /// Blocks handed out.
    pub allocations: u64,
    /// Calls to the device's own allocator (cudaMalloc), which may synchronise.
    pub device_allocations: u64,
    /// Calls to the device's own free (cudaFree), which synchronise.
    pub device_frees: u64,
    /// Times when the cache was emptied to make room.
    pub retries: u64,
    /// Requests that failed.
    pub out_of_memory: u64,
    /// Bytes taken from the device.
    pub reserved_bytes: u64,
    /// Bytes handed out.
    pub active_bytes: u64,
}

/// A caching allocator's statistics, of one device.
pub trait AllocatorStats: Debug + Send {
    /// What the device is called: `cuda:0`.
    fn device(&self) -> String;

    /// The counters now. Called after each stage: must take microseconds, and never wait for the device.
    ///
    /// # Errors
    /// There is no such allocator.
    fn counters(&self) -> Result<AllocatorCounters, DeviceError>;
}

/// Captures every kernel for a while. One capture at a time in a process.
pub trait KernelCapture: Debug + Send + Sync {
    /// Begins, on all threads where the tracer can. Returns what the capture cannot see, in words, e.g. lanes whose
    /// operators it lacks.
    ///
    /// # Errors
    /// Another tool holds the tracer, or a capture runs.
    fn start(&self) -> Result<Vec<String>, DeviceError>;

    /// Ends, and writes the trace as Chrome JSON to `file`, which does not exist. May take seconds; called on a thread of
    /// its own.
    ///
    /// # Errors
    /// No capture runs, or the file cannot be written.
    fn stop(&self, file: &Path) -> Result<(), DeviceError>;

    /// Which of these lanes, whose threads are called like them, have no operator in the capture that was stopped last.
    /// By default none: a tracer that knows no operators lacks none.
    fn lanes_without_operators(&self, lanes: &[String]) -> Vec<String> {
        let _ = lanes;
        Vec::new()
    }
}
