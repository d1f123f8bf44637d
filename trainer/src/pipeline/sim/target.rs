//! A simulated target, and what follows it.

use super::Sim;
use super::clockwork::Clockwork;
use super::gpu::{Gpu, Queue};
use crate::pipeline::Batch;
use crate::pipeline::streams::Streams;
use crate::pipeline::work::{Post, Read, Stream};
use dflash_profiler::{DeviceStream, span};
use std::sync::Arc;

/// A forward pass: when the device will have done it, true nanoseconds.
pub(in crate::pipeline) struct Fresh(i64);

/// Packed taps: when, and how many bytes.
pub(in crate::pipeline) struct Packed(i64, u64);

/// A target.
pub(in crate::pipeline) struct Reader {
    pub(super) clockwork: Clockwork,
    pub(super) gpu: Arc<Gpu>,
    pub(super) stream: Stream,
}

impl Read<Sim> for Reader {
    fn begin(&mut self) -> Result<Streams, String> {
        let stream = Arc::new(self.gpu.stream(Queue::Main).clone());
        self.stream = Some(Arc::clone(&stream) as Arc<dyn DeviceStream>);
        Ok(Streams::timed(stream))
    }

    fn forward(&mut self, batch: &Batch<()>) -> Result<Option<Fresh>, String> {
        self.clockwork.iteration()?;
        if batch.unread.is_empty() {
            return Ok(None);
        }
        {
            let _span = span!("target.upload", &self.stream);
            self.clockwork.on(&self.gpu, Queue::Main, "target.upload");
        }
        let _span = span!("target.forward", &self.stream);
        Ok(Some(Fresh(self.clockwork.on(&self.gpu, Queue::Main, "target.forward"))))
    }
}

/// Packs and copies.
pub(in crate::pipeline) struct Poster {
    pub(super) clockwork: Clockwork,
    pub(super) gpu: Arc<Gpu>,
    /// Whether it has a lane, and so a stream, of its own.
    pub(super) own_stream: bool,
    pub(super) token_bytes: u64,
    pub(super) lengths: Arc<[u64]>,
}

impl Poster {
    fn queue(&self) -> Queue {
        if self.own_stream { Queue::Copy } else { Queue::Main }
    }
}

impl Post<Sim> for Poster {
    fn begin(&mut self) -> Result<Streams, String> {
        Ok(Streams::timed(Arc::new(self.gpu.stream(self.queue()).clone())))
    }

    fn pack(&mut self, batch: &Batch<()>, fresh: Option<Fresh>) -> Result<Option<Packed>, String> {
        self.clockwork.iteration()?;
        if let Some(Fresh(done)) = fresh.filter(|_| self.own_stream) {
            // The copy stream waits for the main one's event.
            self.clockwork.sleep_until(done);
        }
        let done = self.clockwork.on(&self.gpu, self.queue(), "target.pack");
        let longest = batch.samples.iter().filter_map(|&i| self.lengths.get(i)).max().copied().unwrap_or_default();
        Ok(Some(Packed(done, longest * batch.samples.len() as u64 * self.token_bytes)))
    }

    fn copy(&mut self, packed: Packed, _: Option<usize>) -> Result<(i64, u64), String> {
        let done = self.clockwork.on(&self.gpu, self.queue(), "target.copy");
        Ok((done.max(packed.0), packed.1))
    }
}
