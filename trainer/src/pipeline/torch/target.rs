//! A target's work: forward passes, packing, copies.

use super::features::KeptStates;
use super::rehearsal::{Largest, alone, set_by};
use super::{Fresh, Torch};
use crate::config::{FeatureCache, Pipeline, Synchronisation, Transport as Way, bytes};
use crate::device::place;
use crate::drafter::{Packed, packed};
use crate::instrument;
use crate::pipeline::Batch;
use crate::pipeline::parts::Text;
use crate::pipeline::post_loop;
use crate::pipeline::streams::Streams;
use crate::pipeline::transport::{self, Transport, joined};
use crate::pipeline::work::{Post, Read};
use crate::target::Target;
use dflash_profiler::span;
use dflash_torch::Handoff;
use tch::{Device, Kind, Tensor};

/// Runs the target over the rows of a batch that nobody has read.
pub(in crate::pipeline) struct Reader<'a> {
    pub(in crate::pipeline) target: Target,
    pub(in crate::pipeline) samples: &'a [Text],
    pub(in crate::pipeline) taps: Vec<usize>,
    /// What the target's head reads goes along behind the taps.
    pub(in crate::pipeline) teacher: bool,
    pub(in crate::pipeline) largest: Largest,
}

impl Read<Torch<'_>> for Reader<'_> {
    fn begin(&mut self) -> Result<Streams, String> {
        let streams = Streams::enter(self.target.device(), &[])?;
        self.target.stream = instrument::stream(self.target.device());
        self.largest.rehearse(self.target.device(), || self.rehearse());
        Ok(streams)
    }

    fn forward(&mut self, batch: &Batch<Tensor>) -> Result<Option<Fresh>, String> {
        if batch.unread.is_empty() {
            return Ok(None);
        }
        let ids = {
            let _span = span!("target.upload", &self.target.stream);
            let rows: Vec<i64> = batch.unread.iter().map(|&row| row as i64).collect();
            place(&batch.ids.index_select(0, &Tensor::from_slice(&rows)), self.target.device())
        };
        let packed = self.packed(batch.unread.iter().map(|&row| batch.samples[row]), &ids);
        let _span = span!("target.forward", &self.target.stream);
        Fresh::of(self.target.drafter_taps(&ids, packed.as_ref(), &self.taps, self.teacher)).map(Some)
    }
}

impl Reader<'_> {
    /// Where the documents of the samples that are read, ids [rows, S], lie; `None`: each is one.
    fn packed(&self, samples: impl Iterator<Item = usize>, ids: &Tensor) -> Option<Packed> {
        let rows: Vec<_> = samples.map(|sample| self.samples[sample].row()).collect();
        packed(&rows, ids.size()[1] as usize, self.target.device())
    }

    /// The largest batch, and taps of as many as the post lane may hold besides.
    fn rehearse(&self) {
        let ids = self.largest.ids(self.samples, self.target.device());
        let packed = self.packed(self.largest.samples.iter().copied(), &ids);
        let taps = self.target.drafter_taps(&ids, packed.as_ref(), &self.taps, self.teacher);
        if let Some(tap) = taps.first() {
            set_by((post_loop::DEPTH + IN_HAND) * taps.len(), &tap.size(), (tap.kind(), tap.device()));
        }
    }
}

/// Batches that a lane and the one behind it work on, and whose memory streams have not done with yet.
const IN_HAND: usize = 4;

/// Packs and copies what a target left.
pub(in crate::pipeline) struct Poster<'a> {
    samples: &'a [Text],
    device: Device,
    /// `None`: nothing is kept.
    features: Option<&'a KeptStates>,
    batched: bool,
    transport: Box<dyn Transport>,
    drafters: Vec<Device>,
    width: i64,
    kind: Kind,
    largest: Largest,
    /// Batches of this target, and bytes, that may wait for the drafters.
    room: (usize, u64),
    /// Batches go straight to their drafter's device.
    peer: bool,
}

impl<'a> Poster<'a> {
    /// For a target whose taps have `width` numbers a token in all; `drafters` are the drafters' devices, `largest` the batch
    /// that needs most memory.
    pub(in crate::pipeline) fn new(
        config: &Pipeline,
        samples: &'a [Text],
        target: &Target,
        (width, largest): (i64, Largest),
        features: &'a KeptStates,
        drafters: &[Device],
    ) -> Self {
        Self {
            samples,
            device: target.device(),
            features: (config.feature_cache != FeatureCache::Off).then_some(features),
            batched: config.synchronisation == Synchronisation::Batched,
            transport: transport::new(config.transport, drafters.iter().any(|device| device.is_cuda())),
            drafters: drafters.to_vec(),
            width,
            kind: target.kind(),
            largest,
            // Checked with the configuration.
            room: (
                config.hs_queue.div_ceil(config.targets().len()),
                bytes(&config.hs_queue_bytes).flatten().unwrap_or(u64::MAX),
            ),
            peer: config.transport == Way::Peer,
        }
    }

    /// Memory for as many packed batches as there may be at a time, wherever they are made.
    fn rehearse(&self) {
        let _alone = alone();
        let [rows, tokens] = self.largest.size(self.samples);
        let shape = [rows, tokens, self.width];
        let bytes = shape.iter().product::<i64>().cast_unsigned() * self.kind.elt_size_in_bytes() as u64;
        let waiting = self.room.0.min((self.room.1 / bytes.max(1)) as usize);
        for (device, waits) in self.places() {
            set_by(if waits { waiting + IN_HAND } else { IN_HAND }, &shape, (self.kind, device));
        }
    }

    /// Where packed batches are made, and whether they wait there for a drafter: on its own device, and on others that they
    /// are copied to at once.
    fn places(&self) -> Vec<(Device, bool)> {
        let mut places = vec![(self.device, self.drafters.contains(&self.device))];
        for &drafter in self.drafters.iter().filter(|_| self.peer) {
            if !places.iter().any(|(device, _)| *device == drafter) {
                places.push((drafter, true));
            }
        }
        places
    }

    /// The device that all drafters are on, if it is one.
    fn common(&self) -> Option<Device> {
        let first = *self.drafters.first()?;
        self.drafters.iter().all(|&device| device == first).then_some(first)
    }
}

impl Post<Torch<'_>> for Poster<'_> {
    fn begin(&mut self) -> Result<Streams, String> {
        let streams = Streams::enter(self.device, &self.drafters)?;
        if self.features.is_none() {
            self.rehearse();
        }
        Ok(streams)
    }

    fn pack(&mut self, batch: &Batch<Tensor>, fresh: Option<Fresh>) -> Result<Option<Vec<Tensor>>, String> {
        if batch.samples.is_empty() {
            return Ok(Some(vec![Tensor::zeros([0, 0, self.width], (self.kind, Device::Cpu))]));
        }
        let fresh = fresh.map(Fresh::take).transpose()?;
        let Some(features) = self.features else {
            let parts = fresh.unwrap_or_default();
            return Ok(Some(if self.batched { vec![joined(&parts)] } else { parts }));
        };
        let whole = batch.unread.len() == batch.samples.len();
        let taps = fresh.map(|parts| joined(&parts));
        if let Some(taps) = &taps {
            let lengths: Vec<i64> = batch.samples.iter().map(|&i| self.samples[i].ids.len() as i64).collect();
            features.keep(&batch.samples, &batch.unread, &lengths, taps)?;
        }
        let taps = match taps.filter(|_| whole) {
            None => features.gather(&batch.samples)?,
            whole => whole,
        };
        Ok(taps.map(|taps| vec![taps]))
    }

    fn copy(&mut self, packed: Vec<Tensor>, to: Option<usize>) -> Result<(Handoff, u64), String> {
        let to = to.and_then(|drafter| self.drafters.get(drafter).copied()).or_else(|| self.common());
        let taps = self.transport.send(packed, to).map_err(|error| error.to_string())?;
        let bytes = taps.tensor().numel() * taps.tensor().kind().elt_size_in_bytes();
        Ok((taps, bytes as u64))
    }
}
