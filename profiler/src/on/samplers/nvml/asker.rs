//! Asks GPUs, and keeps the account of what that costs.

use std::fmt::{Debug, Formatter, Result as Formatted};
use std::time::{Duration, Instant};

use super::gpus::{Answer, Fault, Gpus, Query};
use crate::on::samplers::cost::Cost;
use crate::on::samplers::sink::Sink;

/// The clocks that are read: a test has its own.
pub(crate) struct Clocks {
    /// Time since the sampler's start.
    pub now: Box<dyn Fn() -> Duration>,
    /// CPU time of this thread.
    pub cpu_ns: Box<dyn Fn() -> u64>,
}

impl Clocks {
    pub(crate) fn real() -> Self {
        let start = Instant::now();
        Self { now: Box::new(move || start.elapsed()), cpu_ns: Box::new(dflash_sys::thread_cpu_ns) }
    }
}

impl Debug for Clocks {
    fn fmt(&self, f: &mut Formatter<'_>) -> Formatted {
        f.debug_struct("Clocks").field("now", &(self.now)()).finish_non_exhaustive()
    }
}

/// The library with a clock beside it.
#[derive(Debug)]
pub(super) struct Asker<G> {
    pub gpus: G,
    clocks: Clocks,
    cost: Cost,
}

impl<G: Gpus> Asker<G> {
    pub(super) fn new(gpus: G, clocks: Clocks) -> Self {
        Self { gpus, clocks, cost: Cost::new("nvml") }
    }

    pub(super) fn now(&self) -> Duration {
        (self.clocks.now)()
    }

    pub(super) fn ask(&mut self, gpu: usize, query: Query) -> Result<Answer, Fault> {
        let begin = self.now();
        let answer = self.gpus.ask(gpu, query);
        self.cost.call(self.now().saturating_sub(begin));
        answer
    }

    pub(super) fn record_cost(&self, sink: &mut dyn Sink) {
        self.cost.record((self.clocks.cpu_ns)(), sink);
    }
}
