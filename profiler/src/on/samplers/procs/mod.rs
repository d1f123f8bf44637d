//! The thread `dflash-procs`: CPU time and memory of this process, thread by thread.
//!
//! Each turn gives `process.cpu` (%, 100 is one core), `process.rss` and `process.rss.peak` (bytes),
//! `process.switches.voluntary` and `.involuntary` (a second), and `thread.<name>.cpu` (%); see `threads` for the names.

mod lanes;
mod source;
mod threads;

use std::time::{Duration, Instant};

pub(crate) use lanes::LaneThread;
use source::{Kernel, Source};
use threads::Threads;

use super::cost::Cost;
use super::sink::Sink;
use super::worker::Stop;

/// Below that, figures are noise and the kernel's ticks.
const AT_MOST_EVERY: Duration = Duration::from_millis(10);

/// The thread's work.
pub(crate) fn run(stop: &Stop, every: Duration, mut sink: impl Sink) {
    let (mut sampler, mut cost) = (Sampler::<Kernel>::default(), Cost::new("procs"));
    cost.record(dflash_sys::thread_cpu_ns(), &mut sink);
    let (every, mut go_on) = (every.max(AT_MOST_EVERY), true);
    while go_on {
        let begin = Instant::now();
        sampler.sample(&mut sink);
        let took = begin.elapsed();
        cost.call(took);
        cost.record(dflash_sys::thread_cpu_ns(), &mut sink);
        // However many threads there are, it rests at least half of the time. Told to end, it looks once more: a run
        // shorter than one turn has its figures too.
        if !stop.rest(every.saturating_sub(took).max(took)) {
            go_on = false;
            sampler.sample(&mut sink);
            cost.record(dflash_sys::thread_cpu_ns(), &mut sink);
        }
    }
}

/// Remembers the last turn, since rates need two.
#[derive(Debug, Default)]
struct Sampler<S = Kernel> {
    source: S,
    last: Option<Totals>,
    threads: Threads,
}

/// What only grows.
#[derive(Clone, Copy, Debug)]
struct Totals {
    at_ns: i64,
    cpu_ns: u64,
    switches: Option<(u64, u64)>,
}

impl<S: Source> Sampler<S> {
    /// Reads everything. What the system does not tell is left out.
    fn sample(&mut self, sink: &mut dyn Sink) {
        let (at_ns, cpu_ns, switches) = (self.source.now_ns(), self.source.process_cpu_ns(), self.source.switches());
        let now = Totals { at_ns, cpu_ns, switches };
        let before = self.last.replace(now);
        let elapsed_ns = before.map(|before| now.at_ns - before.at_ns).filter(|ns| *ns > 0);
        if let (Some(before), Some(elapsed_ns)) = (before, elapsed_ns) {
            rates(&before, &now, elapsed_ns, sink);
        }
        self.threads.sample(&self.source, elapsed_ns, sink);
        if let Some((resident, peak)) = self.source.memory() {
            sink.sample("process.rss", "bytes", resident as f64);
            sink.sample("process.rss.peak", "bytes", peak as f64);
        }
    }
}

fn rates(before: &Totals, now: &Totals, elapsed_ns: i64, sink: &mut dyn Sink) {
    let percent = now.cpu_ns.saturating_sub(before.cpu_ns) as f64 * 100.0 / elapsed_ns as f64;
    sink.sample("process.cpu", "%", percent);
    if let (Some(before), Some(now)) = (before.switches, now.switches) {
        let rate = |before: u64, now: u64| now.saturating_sub(before) as f64 * 1e9 / elapsed_ns as f64;
        sink.sample("process.switches.voluntary", "1/s", rate(before.0, now.0));
        sink.sample("process.switches.involuntary", "1/s", rate(before.1, now.1));
    }
}

#[cfg(test)]
mod tests;
