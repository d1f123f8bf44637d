//! What looks at the machine while the program works: `procs` (this process and its threads) and `nvml` (its GPUs), each
//! on a named thread of its own, with its own cost accounted.

mod cost;
mod nvml;
mod procs;
mod sink;
#[cfg(test)]
mod tests;
mod worker;

use std::sync::Arc;
use std::time::{Duration, Instant};

use dflash_timeline::record::Severity;
use nvml_wrapper::Nvml;

pub use nvml::gpu_details;
pub(crate) use procs::LaneThread;
use sink::{HubSink, Sink};
use worker::{End, Stop, Worker};

use crate::Options;
use crate::on::hub::Hub;

/// How long the end of a recording waits for samplers that hang in a call of the system.
const END_WITHIN: Duration = Duration::from_secs(1);

/// The samplers that run.
#[derive(Debug)]
pub(crate) struct Samplers {
    hub: Arc<Hub>,
    workers: Vec<Worker>,
}

impl Samplers {
    /// Starts those that are wanted. One that gets no thread is missing, and says so.
    pub(crate) fn start(hub: &Arc<Hub>, options: &Options) -> Self {
        let mut samplers = Self { hub: Arc::clone(hub), workers: Vec::new() };
        if let Some(every) = options.sample_every {
            let sink = HubSink::new(Arc::clone(hub));
            samplers.add("dflash-procs", move |stop| procs::run(stop, every, sink));
        }
        if let Some(every) = options.nvml.every {
            let (sink, options) = (HubSink::new(Arc::clone(hub)), options.nvml.clone());
            // Read here: the thread would race with a program that changes its environment.
            let environment = nvml::Visible::from_environment();
            let run = move |stop: &Stop| nvml::run(stop, every, &options, &environment, Nvml::init, sink);
            samplers.add("dflash-nvml", run);
        }
        samplers
    }

    fn add(&mut self, name: &'static str, body: impl FnOnce(&Stop) + Send + 'static) {
        match Worker::start(name, body) {
            Ok(worker) => self.workers.push(worker),
            Err(error) => self.warn(format!("cannot start the thread {name}: {error}; what it samples is missing")),
        }
    }

    /// Ends them; the writer must still run, to take their last readings. Never waits for long.
    pub(crate) fn end(mut self) {
        self.workers.iter_mut().for_each(Worker::tell);
        let begin = Instant::now();
        for worker in std::mem::take(&mut self.workers) {
            let name = worker.name();
            match worker.end(END_WITHIN.saturating_sub(begin.elapsed())) {
                End::Done => {}
                End::Panicked => {
                    self.warn(format!("the thread {name} panicked, and what it samples is missing; report this"))
                }
                End::LeftBehind => {
                    self.warn(format!("the thread {name} still hangs in a call of the system: left behind"))
                }
            }
        }
    }

    fn warn(&self, text: String) {
        HubSink::new(Arc::clone(&self.hub)).mark(Severity::Warning, text);
    }
}
