//! A moment on a stream.

use std::ptr::null_mut;

use tch::Device;

use crate::device;
use crate::ffi::{self, RawEvent, answer};
use crate::runtime::{Runtime, RuntimeEvent};
use crate::stream::Stream;
use crate::{Result, TorchError};

/// By whose functions an event is made, recorded and asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// The device runtime's own (libcudart): half the cost.
    Runtime,
    /// libtorch's `c10::Event`: works with every libtorch.
    Generic,
}

impl Route {
    /// The cheapest that this process has.
    #[must_use]
    pub fn fastest() -> Self {
        if Runtime::get().is_some() { Self::Runtime } else { Self::Generic }
    }
}

/// An event of a GPU. Recording it again forgets the moment before.
///
/// Events made by different routes cannot be compared.
#[derive(Debug)]
pub struct Event {
    handle: Handle,
    device: i16,
    timed: bool,
    recorded: bool,
}

#[derive(Debug)]
enum Handle {
    Runtime(&'static Runtime, RuntimeEvent),
    Generic(*mut RawEvent),
}

// SAFETY: nothing in it belongs to a thread. c10::Event is not thread-safe because `record` changes it; that takes
// `&mut self` here.
unsafe impl Send for Event {}
// SAFETY: what takes `&self` is const in C++ and reads fields that only `record` writes; CUDA's functions below it may be
// called from any thread.
unsafe impl Sync for Event {}

impl Event {
    /// An event that keeps its time, by the fastest route. On the runtime's it costs 0.7 µs: keep and record it again.
    ///
    /// # Errors
    /// `device` is no GPU, is not there, or gave none.
    pub fn timed(device: Device) -> Result<Self> {
        Self::new(device, true, Route::fastest())
    }

    /// An event that only orders: it costs a fifth of a timed one to record.
    ///
    /// # Errors
    /// As [`timed`](Self::timed).
    pub fn untimed(device: Device) -> Result<Self> {
        Self::new(device, false, Route::fastest())
    }

    /// An event by a given route.
    ///
    /// # Errors
    /// As [`timed`](Self::timed); and the process does not have that route.
    pub fn new(device: Device, timed: bool, route: Route) -> Result<Self> {
        let device = device::gpu(device)?;
        let handle = match route {
            Route::Generic => generic(timed)?,
            Route::Runtime => {
                let doing = "making an event";
                let absent = || TorchError::Torch { doing, words: "this process has no libcudart".to_owned() };
                let runtime = Runtime::get().ok_or_else(absent)?;
                Handle::Runtime(runtime, runtime.event(device, timed)?)
            }
        };
        Ok(Self { handle, device, timed, recorded: false })
    }

    /// Its GPU's index.
    #[must_use]
    pub fn device_index(&self) -> i16 {
        self.device
    }

    /// Whether it was ever recorded.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        self.recorded
    }

    /// Puts it behind the work that `stream` has so far. Never waits.
    ///
    /// # Errors
    /// The stream is another device's, or the device refused.
    #[inline]
    pub fn record(&mut self, stream: &Stream) -> Result<()> {
        if stream.0.device != self.device {
            return Err(self.two_devices("a stream", stream.0.device));
        }
        match &self.handle {
            Handle::Runtime(runtime, event) => runtime.record(event, stream.0.native, self.device)?,
            // SAFETY: the event is ours and alive, the stream is valid for the call; the answer goes to `answer` alone.
            Handle::Generic(event) => unsafe {
                answer("recording an event", ffi::dflash_event_record(*event, &raw const stream.0))?;
            },
        }
        self.recorded = true;
        Ok(())
    }

    /// Whether the stream has got there; false if it was never recorded. Never waits.
    ///
    /// # Errors
    /// The device failed.
    #[inline]
    pub fn query(&self) -> Result<bool> {
        match &self.handle {
            _ if !self.recorded => Ok(false),
            Handle::Runtime(runtime, event) => runtime.query(event),
            Handle::Generic(event) => {
                let mut done = false;
                // SAFETY: the event is ours and alive, `done` is valid to write to; the answer goes to `answer` alone.
                unsafe { answer("asking an event", ffi::dflash_event_query(*event, &raw mut done)) }?;
                Ok(done)
            }
        }
    }

    /// Waits until the stream has got there.
    ///
    /// # Errors
    /// It was never recorded, or the device failed.
    pub fn synchronize(&self) -> Result<()> {
        match &self.handle {
            _ if !self.recorded => Err(TorchError::NotRecorded),
            Handle::Runtime(runtime, event) => runtime.synchronize(event),
            // SAFETY: the event is ours and alive; the answer goes to `answer` alone.
            Handle::Generic(event) => unsafe { answer("waiting for an event", ffi::dflash_event_synchronize(*event)) },
        }
    }

    /// Nanoseconds from this moment to `later`; negative if that came first. The device gives f32 milliseconds: exact to
    /// 60 ns a second apart, so compare neighbours and sum.
    ///
    /// # Errors
    /// They are of two devices, keep no time, were not recorded, or are not ready.
    pub fn elapsed_ns(&self, later: &Self) -> Result<i64> {
        if self.device != later.device {
            return Err(self.two_devices("an event", later.device));
        }
        if !(self.recorded && later.recorded) {
            return Err(TorchError::NotRecorded);
        }
        if !(self.timed && later.timed) {
            return Err(TorchError::Untimed);
        }
        let ms = match (&self.handle, &later.handle) {
            (Handle::Runtime(runtime, begin), Handle::Runtime(_, end)) => f64::from(runtime.elapsed_ms(begin, end)?),
            (Handle::Generic(begin), Handle::Generic(end)) => elapsed_generic(*begin, *end)?,
            _ => return Err(TorchError::Untimed),
        };
        Ok((ms * 1e6).round() as i64)
    }

    /// Lets later work of `stream` wait.
    pub(crate) fn block(&self, stream: &Stream) -> Result<()> {
        match &self.handle {
            Handle::Runtime(runtime, event) => runtime.wait(stream.0.native, stream.0.device, event),
            // SAFETY: the event is ours and alive, the stream is valid for the call; the answer goes to `answer` alone.
            Handle::Generic(event) => unsafe {
                answer("letting a stream wait", ffi::dflash_event_block(*event, &raw const stream.0))
            },
        }
    }

    #[cold]
    fn two_devices(&self, with: &'static str, other: i16) -> TorchError {
        TorchError::TwoDevices { what: "an event", one: self.device, with, other }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        match &self.handle {
            Handle::Runtime(runtime, event) => runtime.destroy(event),
            // SAFETY: made by dflash_event_new, and freed here alone.
            Handle::Generic(event) => unsafe { ffi::dflash_event_free(*event) },
        }
    }
}

fn generic(timed: bool) -> Result<Handle> {
    let mut event = null_mut();
    // SAFETY: `event` is valid to write to; the answer goes to `answer` alone.
    unsafe { answer("making an event", ffi::dflash_event_new(timed, &raw mut event)) }?;
    Ok(Handle::Generic(event))
}

fn elapsed_generic(begin: *const RawEvent, end: *const RawEvent) -> Result<f64> {
    let mut ms = 0.0;
    // SAFETY: both events are their owners' and alive, `ms` is valid to write to; the answer goes to `answer` alone.
    let answered = unsafe { answer("the time between two events", ffi::dflash_event_elapsed(begin, end, &raw mut ms)) };
    match answered {
        Ok(()) => Ok(ms),
        // It asks both events itself, and this is how it says that one is not ready.
        Err(TorchError::Torch { words, .. }) if words.contains("must be completed") => Err(TorchError::NotReady),
        Err(error) => Err(error),
    }
}
