//! A tensor on its way from one thread's stream to another's.

use tch::{Device, Tensor};

use crate::Result;
use crate::event::Event;
use crate::stream::Stream;

/// A tensor that one thread has queued the making of, for another thread. Nobody waits on the host: the taker's stream waits
/// on the device, and the tensor's memory is not used again before the taker's work is done.
#[derive(Debug)]
pub struct Handoff {
    tensor: Tensor,
    made: Option<Event>,
}

impl Handoff {
    /// Behind the work that the calling thread's current stream has so far. On the CPU there is nothing to wait for.
    ///
    /// # Errors
    /// The device refused.
    pub fn of(tensor: Tensor) -> Result<Self> {
        let made = match tensor.device() {
            device @ Device::Cuda(_) => {
                let mut made = Event::untimed(device)?;
                made.record(&Stream::current(device)?)?;
                Some(made)
            }
            _ => None,
        };
        Ok(Self { tensor, made })
    }

    /// The tensor, for the calling thread's current stream of its device.
    ///
    /// # Errors
    /// The device refused.
    pub fn take(self) -> Result<Tensor> {
        if let Some(made) = &self.made {
            let stream = Stream::current(self.tensor.device())?;
            stream.wait(made)?;
            stream.uses(&self.tensor)?;
        }
        Ok(self.tensor)
    }
}
