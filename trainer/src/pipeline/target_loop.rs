//! The lanes `target:0`, `target:1`, …: read batches; leave hidden states, or hand them to their own lane `post:i`.

use super::post_loop::Posted;
use super::shared::Shared;
use super::streams::Streams;
use super::work::{Post, Read, Stream, World};
use super::{Batch, BufferedHSQueue, HiddenStates};
use dflash_profiler::{Counter, IterationGuard, Kind, begin_iteration, flow_put, flow_take, span};
use std::time::Instant;

/// Name of a lane.
pub(super) fn lane(index: usize) -> String {
    format!("target:{index}")
}

/// Runs a target over batches.
pub(super) struct TargetForwardLoop<'a, W: World> {
    shared: &'a Shared<'a, W>,
    lane: String,
    work: W::Target,
    then: Then<'a, W>,
    put_depth: Depths,
}

/// What becomes of a forward pass.
pub(super) enum Then<'a, W: World> {
    /// Packed and copied here.
    Here(W::Post),
    /// Handed to another lane.
    Elsewhere(&'a BufferedHSQueue<Posted<W>>),
}

/// Counters of the hidden states' queue.
pub(super) struct Depths {
    items: Counter,
    bytes: Counter,
}

impl Depths {
    pub(super) fn new<W: World>(shared: &Shared<'_, W>) -> Self {
        Self {
            items: shared.profiler.counter("queue.hidden_states.depth", "items"),
            bytes: shared.profiler.counter("queue.hidden_states.bytes", "bytes"),
        }
    }

    pub(super) fn record(&self, depth: super::Depth) {
        self.items.record(depth.items as f64);
        self.bytes.record(depth.bytes as f64);
    }
}

impl<'a, W: World> TargetForwardLoop<'a, W> {
    pub(super) fn new(shared: &'a Shared<'a, W>, index: usize, work: W::Target, then: Then<'a, W>) -> Self {
        Self { shared, lane: lane(index), work, then, put_depth: Depths::new(shared) }
    }

    /// Until the batch queue ends, or nobody wants hidden states any more; returns the loop's seconds.
    pub(super) fn run(mut self) -> Result<f64, String> {
        let _guard = tch::no_grad_guard();
        let streams = self.begin();
        let began = Instant::now();
        let ended = streams.as_ref().map_err(Clone::clone).and_then(|(_, last)| self.loop_(&last.timed));
        let seconds = began.elapsed().as_secs_f64();
        match &self.then {
            Then::Here(_) => self.shared.made_all(),
            Then::Elsewhere(queue) => queue.close(),
        }
        ended.map(|()| seconds)
    }

    /// The target's streams, and those of what follows here. They go before the target does, whose weights they use.
    fn begin(&mut self) -> Result<(Streams, Streams), String> {
        let first = self.work.begin()?;
        let mut last = match &mut self.then {
            Then::Here(post) => post.begin()?,
            Then::Elsewhere(_) => Streams::default(),
        };
        // Of two streams the one that copies is the later one.
        last.timed = last.timed.take().or_else(|| first.timed.clone());
        Ok((first, last))
    }

    fn loop_(&mut self, stream: &Stream) -> Result<(), String> {
        let taken_depth = self.shared.profiler.counter("queue.batches.depth", "items");
        for iteration in 0.. {
            let guard = begin_iteration(self.shared.kind(iteration));
            let taken = {
                let _span = span!("target.wait");
                self.shared.batches.take(0)
            };
            let Some((batch, depth)) = taken else {
                guard.kind(Kind::Drain);
                break;
            };
            taken_depth.record(depth.items as f64);
            flow_take(batch.number);
            guard.tokens(self.shared.tokens(&batch.samples));
            let fresh = self.work.forward(&batch)?;
            if self.hand_on(batch, fresh, stream, &guard)?.is_none() {
                guard.kind(Kind::Drain);
                break;
            }
            self.shared.report(&self.lane, iteration);
        }
        Ok(())
    }

    /// `None`: nobody wants it.
    fn hand_on(
        &mut self,
        batch: Batch<W::Ids>,
        fresh: Option<W::Fresh>,
        stream: &Stream,
        pass: &IterationGuard,
    ) -> Result<Option<()>, String> {
        let number = batch.number;
        let post = match &mut self.then {
            Then::Here(post) => post,
            Then::Elsewhere(queue) => {
                let _span = span!("target.put");
                flow_put(POST_FLOW + number);
                let began = Instant::now();
                let put = queue.put(number, Posted { batch, fresh }, 0);
                self.shared.target_wait.add(self.shared.waited(pass, began));
                return Ok(put.map(|_| ()));
            }
        };
        let packed = {
            let _span = span!("target.pack", stream);
            post.pack(&batch, fresh)?
        };
        let Some(packed) = packed else { return Ok(None) };
        let (taps, bytes) = {
            let _span = span!("target.copy", stream);
            post.copy(packed, self.shared.taker(number))?
        };
        let _span = span!("target.put");
        flow_put(HIDDEN_STATES_FLOW + number);
        let began = Instant::now();
        let put = self.shared.hidden_states.put(number, HiddenStates::of(batch, taps), bytes);
        self.shared.target_wait.add(self.shared.waited(pass, began));
        let Some(depth) = put else { return Ok(None) };
        self.put_depth.record(depth);
        Ok(Some(()))
    }
}

/// Hand-offs of hidden states are told from those of batches by this offset.
pub(super) const HIDDEN_STATES_FLOW: u64 = 1 << 40;
/// Those from a target to its post lane.
pub(super) const POST_FLOW: u64 = 1 << 41;
