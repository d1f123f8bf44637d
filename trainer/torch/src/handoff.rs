//! A tensor on its way from one thread's stream to another's.

use std::sync::Arc;

use tch::{Device, Tensor};

use crate::Result;
use crate::event::Event;
use crate::stream::Stream;

/// When tensors are there that one thread has queued the making of, for other threads. The host does not wait for GPUs: a
/// taker's stream does.
#[derive(Clone, Debug, Default)]
pub struct Moment(Arc<Vec<Event>>);

impl Moment {
    /// Behind the work that the calling thread's current streams of the tensors' GPUs have so far. On the CPU there is
    /// nothing to wait for.
    ///
    /// # Errors
    /// The device refused.
    pub fn of(tensors: &[Tensor]) -> Result<Self> {
        Self::on(tensors.iter().map(Tensor::device))
    }

    /// Behind the work that the calling thread's current streams of `devices` have so far: also for tensors in main memory
    /// that a stream still copies to.
    ///
    /// # Errors
    /// The device refused.
    pub fn on(devices: impl IntoIterator<Item = Device>) -> Result<Self> {
        let mut seen = Vec::new();
        let mut events = Vec::new();
        for device in devices {
            if matches!(device, Device::Cuda(_)) && !seen.contains(&device) {
                let mut made = Event::untimed(device)?;
                made.record(&Stream::current(device)?)?;
                events.push(made);
                seen.push(device);
            }
        }
        Ok(Self(Arc::new(events)))
    }

    /// Makes `tensors` safe to use for the calling thread's current streams: those of the tensors' GPUs, and that of
    /// `device` for tensors in main memory. Their memory on a GPU is not used again before that work is done.
    ///
    /// For tensors in main memory on `Device::Cpu` the caller itself waits ([`Moment::holds_up`] says so).
    ///
    /// # Errors
    /// The device refused.
    pub fn reach(&self, tensors: &[Tensor], device: Device) -> Result<()> {
        let mut waiting = Vec::new();
        for tensor in tensors {
            let user = if tensor.device() == Device::Cpu { device } else { tensor.device() };
            if !waiting.contains(&user) {
                self.wait_on(user)?;
                waiting.push(user);
            }
            if matches!(tensor.device(), Device::Cuda(_)) {
                Stream::current(user)?.uses(tensor)?;
            }
        }
        Ok(())
    }

    /// Whether [`Moment::reach`] lets the caller itself wait for a GPU.
    #[must_use]
    pub fn holds_up(&self, tensors: &[Tensor], device: Device) -> bool {
        let on_cpu = device == Device::Cpu && tensors.iter().any(|tensor| tensor.device() == Device::Cpu);
        on_cpu && !self.0.is_empty()
    }

    fn wait_on(&self, device: Device) -> Result<()> {
        match device {
            Device::Cuda(_) => {
                let stream = Stream::current(device)?;
                self.0.iter().try_for_each(|event| stream.wait(event))
            }
            _ => self.0.iter().try_for_each(Event::synchronize),
        }
    }
}

/// A tensor that one thread has queued the making of, for another thread. Nobody waits on the host: the taker's stream waits
/// on the device, and the tensor's memory is not used again before the taker's work is done.
#[derive(Debug)]
pub struct Handoff {
    tensor: Tensor,
    made: Moment,
}

impl Handoff {
    /// Behind the work that the calling thread's current stream has so far. On the CPU there is nothing to wait for.
    ///
    /// # Errors
    /// The device refused.
    pub fn of(tensor: Tensor) -> Result<Self> {
        let made = Moment::on([tensor.device()])?;
        Ok(Self { tensor, made })
    }

    /// A tensor in main memory that the current stream of `source` still copies to.
    ///
    /// # Errors
    /// The device refused.
    pub fn from(tensor: Tensor, source: Device) -> Result<Self> {
        let made = Moment::on([source, tensor.device()])?;
        Ok(Self { tensor, made })
    }

    /// The tensor, for the calling thread's current stream of its device.
    ///
    /// # Errors
    /// The device refused.
    pub fn take(self) -> Result<Tensor> {
        self.lend(self.tensor.device())
    }

    /// The tensor, for the calling thread to copy to `device`. In main memory, and for `Device::Cpu`, the caller waits until
    /// the copy is there.
    ///
    /// # Errors
    /// The device refused.
    pub fn lend(&self, device: Device) -> Result<Tensor> {
        self.made.reach(std::slice::from_ref(&self.tensor), device)?;
        Ok(self.tensor.shallow_clone())
    }

    /// Whether [`Handoff::lend`] lets the caller itself wait for a GPU.
    #[must_use]
    pub fn holds_up(&self, device: Device) -> bool {
        self.made.holds_up(std::slice::from_ref(&self.tensor), device)
    }

    /// The tensor, which may not be there yet.
    pub fn tensor(&self) -> &Tensor {
        &self.tensor
    }
}
