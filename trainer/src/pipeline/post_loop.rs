//! The lanes `post:0`, `post:1`, …: pack and copy what their target left, while it runs on.

use super::shared::Shared;
use super::target_loop::{Depths, HIDDEN_STATES_FLOW, POST_FLOW};
use super::work::{Post, Stream, World};
use super::{Batch, BufferedHSQueue, HiddenStates};
use dflash_profiler::{Kind, begin_iteration, flow_put, flow_take, span};
use std::time::Instant;

/// Batches that may wait between a target and its post lane. One is enough to keep both busy; each holds memory on the
/// target's device.
pub(super) const DEPTH: usize = 1;

/// Name of a lane.
pub(super) fn lane(index: usize) -> String {
    format!("post:{index}")
}

/// A batch that the target has run over.
pub(super) struct Posted<W: World> {
    pub(super) batch: Batch<W::Ids>,
    pub(super) fresh: Option<W::Fresh>,
}

/// One target's post lane.
pub(super) struct PostLoop<'a, W: World> {
    pub(super) shared: &'a Shared<'a, W>,
    pub(super) index: usize,
    pub(super) work: W::Post,
    pub(super) from: &'a BufferedHSQueue<Posted<W>>,
}

impl<W: World> PostLoop<'_, W> {
    /// Until its target ends, or nobody wants hidden states any more; returns the loop's seconds.
    pub(super) fn run(mut self) -> Result<f64, String> {
        let _guard = tch::no_grad_guard();
        let streams = self.work.begin();
        let began = Instant::now();
        let ended = streams.as_ref().map_err(Clone::clone).and_then(|streams| self.loop_(&streams.timed));
        let seconds = began.elapsed().as_secs_f64();
        // Its target must not wait for room any more.
        self.from.abandon();
        self.shared.made_all();
        ended.map(|()| seconds)
    }

    fn loop_(&mut self, stream: &Stream) -> Result<(), String> {
        let depths = Depths::new(self.shared);
        let lane = lane(self.index);
        for iteration in 0.. {
            let guard = begin_iteration(self.shared.kind(iteration));
            let taken = {
                let _span = span!("post.wait");
                self.from.take(0)
            };
            let Some((Posted { batch, fresh }, _)) = taken else {
                guard.kind(Kind::Drain);
                break;
            };
            flow_take(POST_FLOW + batch.number);
            guard.tokens(self.shared.tokens(&batch.samples));
            let packed = {
                let _span = span!("post.pack", stream);
                self.work.pack(&batch, fresh)?
            };
            let Some(packed) = packed else {
                guard.kind(Kind::Drain);
                break;
            };
            let number = batch.number;
            let (taps, bytes) = {
                let _span = span!("post.copy", stream);
                self.work.copy(packed, self.shared.taker(number))?
            };
            let put = {
                let _span = span!("post.put");
                flow_put(HIDDEN_STATES_FLOW + number);
                let began = Instant::now();
                let put = self.shared.hidden_states.put(number, HiddenStates::of(batch, taps), bytes);
                let _ = self.shared.waited(&guard, began);
                put
            };
            let Some(depth) = put else {
                guard.kind(Kind::Drain);
                break;
            };
            depths.record(depth);
            self.shared.report(&lane, iteration);
        }
        Ok(())
    }
}
