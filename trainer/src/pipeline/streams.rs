//! The streams of a lane: on a GPU each lane works on streams of its own, so that its device times are its own and no lane's
//! work waits behind another's for nothing.

use super::work::Stream;
use crate::instrument;
use dflash_profiler::DeviceStream;
use dflash_torch::{CurrentStream, Priority, Stream as TorchStream};
use std::sync::Arc;
use tch::Device;

/// While this lives, the thread's operators go to streams of its own. When it goes, their work is done: memory that other
/// streams have made may then be freed, and what the lane made may be read by anyone.
#[derive(Default)]
pub(super) struct Streams {
    /// The stream that the lane's spans are timed on.
    pub(super) timed: Stream,
    entered: Vec<(TorchStream, CurrentStream)>,
}

impl Streams {
    /// Spans are timed on `stream`, and nothing is entered.
    pub(super) fn timed(stream: Arc<dyn DeviceStream>) -> Self {
        Self { timed: Some(stream), entered: Vec::new() }
    }

    /// A stream from the pool on the lane's `own` device, and on each of `others` that it copies to or from. Where the thread
    /// is on a stream of its own already, it stays there. On the CPU nothing changes.
    pub(super) fn enter(own: Device, others: &[Device]) -> Result<Self, String> {
        let mut streams = Self::default();
        for &device in std::iter::once(&own).chain(others).filter(|device| device.is_cuda()) {
            streams.enter_one(device).map_err(|error| format!("{device:?} has no stream for it: {error}"))?;
        }
        streams.timed = instrument::stream(own).map(|stream| Arc::new(stream) as Arc<dyn DeviceStream>);
        Ok(streams)
    }

    fn enter_one(&mut self, device: Device) -> dflash_torch::Result<()> {
        if TorchStream::current(device)?.id() == DEFAULT {
            let stream = TorchStream::from_pool(device, Priority::Normal)?;
            self.entered.push((stream, stream.enter()?));
        }
        Ok(())
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        for (stream, _) in &self.entered {
            // A device that fails here has failed the lane's work before, and a destructor has nobody to tell.
            let _ = stream.synchronize();
        }
    }
}

/// Waits until what the calling thread has queued on `devices` is done, so that other threads' streams may use it.
pub(super) fn settle(devices: impl IntoIterator<Item = Device>) -> Result<(), String> {
    for device in devices.into_iter().filter(|device| device.is_cuda()) {
        let settled = TorchStream::current(device).and_then(|stream| stream.synchronize());
        settled.map_err(|error| format!("{device:?} does not come to an end with its weights: {error}"))?;
    }
    Ok(())
}

/// libtorch's id of the stream that all threads are on at first.
const DEFAULT: i64 = 0;
