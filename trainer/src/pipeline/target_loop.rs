//! The lane `target:0`: reads batches, leaves concatenated hidden states.

use super::features::Features;
use super::run::Shared;
use super::{Batch, HiddenStates, lane};
use crate::instrument;
use crate::target::Target;
use dflash_profiler::{Kind, begin_iteration, flow_put, flow_take, span};
use std::time::Instant;
use tch::{Device, Tensor};

/// Name of the lane.
pub(super) const LANE: &str = "target:0";

/// Runs the target over every batch, or takes what it has kept of an earlier epoch.
pub struct TargetForwardLoop<'a> {
    shared: &'a Shared<'a>,
    target: Target,
    taps: Vec<usize>,
    features: Features,
    drafter_device: Device,
}

impl<'a> TargetForwardLoop<'a> {
    pub(super) fn new(shared: &'a Shared<'a>, target: Target, taps: Vec<usize>, drafter_device: Device) -> Self {
        Self { shared, target, taps, features: Features::new(shared.feature_cache), drafter_device }
    }

    /// Until the batch queue ends, or nobody wants hidden states any more; returns the loop's seconds.
    pub(super) fn run(mut self) -> Result<f64, String> {
        let _guard = tch::no_grad_guard();
        self.target.stream = instrument::stream(self.target.device());
        let taken_depth = self.shared.profiler.counter("queue.batches.depth", "items");
        let put_depth = self.shared.profiler.counter("queue.hidden_states.depth", "items");
        let began = Instant::now();
        for iteration in 0.. {
            let guard = begin_iteration(self.shared.kind(iteration));
            let taken = {
                let _span = span!("target.wait");
                self.shared.batches.take()
            };
            let Some((batch, depth)) = taken else {
                guard.kind(Kind::Drain);
                break;
            };
            taken_depth.record(depth as f64);
            flow_take(batch.number);
            guard.tokens(self.shared.tokens(&batch.samples));
            let states = self.read(batch);
            {
                let _span = span!("target.put");
                flow_put(HIDDEN_STATES_FLOW + states.number);
                let began = Instant::now();
                let Some(depth) = self.shared.hidden_states.put(states) else {
                    guard.kind(Kind::Drain);
                    break;
                };
                self.shared.target_wait.add(began.elapsed());
                put_depth.record(depth as f64);
            }
            if (iteration + 1).is_multiple_of(self.shared.log_every) {
                lane::report(self.shared.observer, LANE, iteration);
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        self.shared.hidden_states.close();
        Ok(seconds)
    }

    fn read(&mut self, batch: Batch) -> HiddenStates {
        let missing = self.features.missing(&batch.samples);
        let lengths: Vec<i64> = batch.samples.iter().map(|&i| self.shared.samples[i].ids.len() as i64).collect();
        let fresh = (!missing.is_empty()).then(|| self.forward(&batch, &missing));
        let whole = fresh.as_ref().filter(|_| missing.len() == batch.samples.len());
        let taps = {
            let _span = span!("target.pack", &self.target.stream);
            if let Some(fresh) = &fresh {
                self.features.keep(&batch.samples, &missing, &lengths, fresh);
            }
            match whole {
                Some(taps) => taps.shallow_clone(),
                None => self.features.gather(&batch.samples, Device::Cpu).unwrap_or_default(),
            }
        };
        let _span = span!("target.copy", &self.target.stream);
        // From GPU to GPU by way of the host; on one device there is nothing to copy.
        let stays = self.target.device() == self.drafter_device;
        // The host waits for the device there.
        let waits = !stays && self.target.device().is_cuda();
        let _sync = waits.then(|| span!("sync.copy"));
        let taps = if stays { taps } else { taps.to_device(Device::Cpu) };
        HiddenStates { number: batch.number, samples: batch.samples, taps }
    }

    /// The target over some rows of a batch: [rows, S, n·D].
    fn forward(&self, batch: &Batch, rows: &[usize]) -> Tensor {
        let ids = {
            let _span = span!("target.upload", &self.target.stream);
            let index: Vec<i64> = rows.iter().map(|&r| r as i64).collect();
            batch.ids.index_select(0, &Tensor::from_slice(&index)).to_device(self.target.device())
        };
        let _span = span!("target.forward", &self.target.stream);
        Tensor::cat(&self.target.features(&ids, &self.taps, false).taps, -1)
    }
}

/// Hand-offs of hidden states are told from those of batches by this offset.
pub(super) const HIDDEN_STATES_FLOW: u64 = 1 << 40;
