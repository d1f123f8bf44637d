//! Streams and events, as the profiler wants them.

use std::any::Any;

use dflash_profiler::{DeviceError, DeviceEvent, DeviceStream, StreamKey};
use dflash_torch::{Event, Priority, Stream};
use tch::Device;

use super::told;

/// A stream of libtorch's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TorchStream(Stream);

/// A timed event of libtorch's.
#[derive(Debug)]
pub struct TorchEvent(Event);

impl TorchStream {
    /// The calling thread's current stream of `device`.
    ///
    /// # Errors
    /// `device` is no GPU, or is not there.
    pub fn current(device: Device) -> Result<Self, DeviceError> {
        Stream::current(device).map(Self).map_err(told)
    }

    /// The stream itself.
    #[must_use]
    pub fn torch(&self) -> &Stream {
        &self.0
    }
}

impl From<Stream> for TorchStream {
    fn from(stream: Stream) -> Self {
        Self(stream)
    }
}

impl DeviceStream for TorchStream {
    #[inline]
    fn key(&self) -> StreamKey {
        StreamKey { device: self.0.device_index(), stream: self.0.id() }
    }

    fn new_event(&self) -> Result<Box<dyn DeviceEvent>, DeviceError> {
        let event = Event::timed(self.0.device()).map_err(told)?;
        Ok(Box::new(TorchEvent(event)))
    }

    #[inline]
    fn record(&self, event: &mut dyn DeviceEvent) -> Result<(), DeviceError> {
        let event = event.as_any_mut().downcast_mut::<TorchEvent>().ok_or_else(stranger)?;
        event.0.record(&self.0).map_err(told)
    }

    /// A stream of high priority: no lane takes one of those, and what is recorded there need not wait for the lanes' work.
    fn side(&self) -> Result<Box<dyn DeviceStream>, DeviceError> {
        let stream = Stream::from_pool(self.0.device(), Priority::High).map_err(told)?;
        Ok(Box::new(Self(stream)))
    }
}

impl DeviceEvent for TorchEvent {
    #[inline]
    fn ready(&self) -> Result<bool, DeviceError> {
        self.0.query().map_err(told)
    }

    fn elapsed_ns(&self, later: &dyn DeviceEvent) -> Result<i64, DeviceError> {
        let later = later.as_any().downcast_ref::<Self>().ok_or_else(stranger)?;
        self.0.elapsed_ns(&later.0).map_err(told)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

#[cold]
fn stranger() -> DeviceError {
    DeviceError("the event is not libtorch's: take it from a stream of the same kind".to_owned())
}
