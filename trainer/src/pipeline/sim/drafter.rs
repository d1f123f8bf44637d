//! A simulated drafter.

use super::Sim;
use super::clockwork::Clockwork;
use super::gpu::{Gpu, Queue};
use crate::eval::RunEvaluation;
use crate::pipeline::HiddenStates;
use crate::pipeline::collective::{Collective, Ended};
use crate::pipeline::streams::Streams;
use crate::pipeline::work::{Figures, Learn, Stream};
use dflash_profiler::{IterationGuard, Profiler, Requests, span};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A drafter: it knows tokens and times, and neither loss nor accuracy.
pub(in crate::pipeline) struct Learner {
    clockwork: Clockwork,
    gpu: Arc<Gpu>,
    stream: Stream,
    lengths: Arc<[u64]>,
    requests: Requests,
    tokens: u64,
    since: Instant,
    /// When the device will have done all that it was told.
    done: i64,
}

/// One stage on the drafter's device.
macro_rules! stage {
    ($self:ident, $name:literal) => {{
        let _span = span!($name, &$self.stream);
        $self.done = $self.clockwork.on(&$self.gpu, Queue::Main, $name);
    }};
}

impl Learner {
    pub(super) fn new(clockwork: Clockwork, gpu: Arc<Gpu>, lengths: Arc<[u64]>, profiler: &Profiler) -> Self {
        let requests = profiler.requests();
        Self { clockwork, gpu, stream: None, lengths, requests, tokens: 0, since: Instant::now(), done: i64::MIN }
    }
}

impl Learn<Sim> for Learner {
    fn begin(&mut self) -> Result<Streams, String> {
        self.stream = Some(Arc::new(self.gpu.stream(Queue::Main).clone()));
        self.since = Instant::now();
        Ok(Streams::default())
    }

    fn backward(&mut self, states: &HiddenStates<i64>) -> Result<(), String> {
        self.clockwork.iteration()?;
        {
            let _span = span!("drafter.upload", &self.stream);
            // Its stream waits for the copy.
            self.clockwork.sleep_until(states.taps);
            self.clockwork.on(&self.gpu, Queue::Main, "drafter.upload");
        }
        stage!(self, "drafter.anchors");
        stage!(self, "drafter.mask");
        stage!(self, "drafter.forward");
        stage!(self, "drafter.loss");
        stage!(self, "drafter.backward");
        self.tokens += states.samples.iter().filter_map(|&i| self.lengths.get(i)).sum::<u64>();
        Ok(())
    }

    fn reduce(&mut self, group: &mut dyn Collective) -> Result<(), Ended> {
        let _span = span!("drafter.reduce", &self.stream);
        // All have come, and then it takes its time.
        group.sum_numbers(&mut [0.0])?;
        self.done = self.clockwork.on(&self.gpu, Queue::Main, "drafter.reduce");
        Ok(())
    }

    fn update(&mut self, _: usize) {
        stage!(self, "drafter.clip");
        stage!(self, "drafter.step");
    }

    fn figures(&mut self, group: &mut dyn Collective) -> Result<Figures, Ended> {
        self.clockwork.sleep_until(self.done);
        let _ = self.clockwork.on_host("sync.metrics");
        let mut tokens = [std::mem::take(&mut self.tokens) as f64];
        group.sum_numbers(&mut tokens)?;
        let rate = tokens[0] / self.since.elapsed().as_secs_f64().max(1e-9);
        self.since = Instant::now();
        // Every made-up token is supervised.
        Ok(Figures { tokens_per_s: Some(rate), supervised_per_s: Some(rate), ..Figures::default() })
    }

    fn rate(&self, _: usize) -> Option<f64> {
        None
    }

    fn evaluate(&mut self, _: usize, _: &dyn Fn() -> bool) -> Result<Option<RunEvaluation>, String> {
        self.clockwork.on_host("drafter.eval").map(|()| None)
    }

    fn paused(&mut self, time: Duration) {
        self.since += time;
    }

    fn after_step(&mut self, _: &IterationGuard, _: usize) {
        if self.requests.take_checkpoint() {
            self.requests.checkpoint_written(Err("a simulation has nothing to write".to_owned()));
        }
    }
}
