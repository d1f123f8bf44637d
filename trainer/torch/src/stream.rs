//! A stream of a GPU. *Stream* means CUDA's: a queue of work that the device does in order.

use tch::Device;

use crate::device;
use crate::event::Event;
use crate::ffi::{self, RawStream, answer};
use crate::{Result, TorchError};

/// Which of libtorch's pools a stream comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Priority {
    /// As the default stream.
    #[default]
    Normal,
    /// Its work goes before that of normal streams.
    High,
}

/// A stream. libtorch owns it for the rest of the process's life; this is its name, free to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(pub(crate) RawStream);

// SAFETY: a name of a stream that is never freed. c10/core/Stream.h: "Streams are explicitly thread-safe"; CUDA's stream
// functions are, too.
unsafe impl Send for Stream {}
// SAFETY: as above; nothing is mutable through it.
unsafe impl Sync for Stream {}

impl Stream {
    /// The calling thread's current stream of `device`: where its operators go.
    ///
    /// # Errors
    /// `device` is no GPU, or is not there.
    pub fn current(device: Device) -> Result<Self> {
        let index = device::gpu(device)?;
        let mut out = RawStream::EMPTY;
        // SAFETY: `out` is valid to write to, and the answer goes to `answer` alone.
        unsafe { answer("the current stream", ffi::dflash_stream_current(index, &raw mut out)) }?;
        Ok(Self(out))
    }

    /// A stream from libtorch's pool, which has 32 a device and priority and hands them out in turn: the 33rd is the first
    /// again.
    ///
    /// # Errors
    /// `device` is no GPU, or is not there.
    pub fn from_pool(device: Device, priority: Priority) -> Result<Self> {
        let index = device::gpu(device)?;
        let mut out = RawStream::EMPTY;
        let high = priority == Priority::High;
        // SAFETY: `out` is valid to write to, and the answer goes to `answer` alone.
        unsafe { answer("a stream from the pool", ffi::dflash_stream_from_pool(index, high, &raw mut out)) }?;
        Ok(Self(out))
    }

    /// Its GPU.
    #[must_use]
    pub fn device(&self) -> Device {
        Device::Cuda(usize::try_from(self.0.device).unwrap_or_default())
    }

    /// Its GPU's index.
    #[must_use]
    pub fn device_index(&self) -> i16 {
        self.0.device
    }

    /// libtorch's id of it, unique within the device; 0 is the default stream.
    #[must_use]
    pub fn id(&self) -> i64 {
        self.0.id
    }

    /// Whether all work so far is done. Never waits.
    ///
    /// # Errors
    /// The device failed.
    pub fn query(&self) -> Result<bool> {
        let mut done = false;
        // SAFETY: both pointers are valid for the call, and the answer goes to `answer` alone.
        unsafe { answer("asking a stream", ffi::dflash_stream_query(&raw const self.0, &raw mut done)) }?;
        Ok(done)
    }

    /// Waits until all work so far is done.
    ///
    /// # Errors
    /// The device failed.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the pointer is valid for the call, and the answer goes to `answer` alone.
        unsafe { answer("waiting for a stream", ffi::dflash_stream_synchronize(&raw const self.0)) }
    }

    /// Lets later work of this stream wait for `event`, which may be another device's. The caller does not wait.
    ///
    /// # Errors
    /// The event was never recorded, or the device refused.
    pub fn wait(&self, event: &Event) -> Result<()> {
        if event.is_recorded() { event.block(self) } else { Err(TorchError::NotRecorded) }
    }
}
