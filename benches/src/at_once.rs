//! Several threads at once, each with its own lane.

use std::sync::Barrier;
use std::thread;
use std::time::Instant;

use crate::stats::spread;
use crate::subject::{SPANS, Subject};

/// Rounds that each thread makes between two barriers: long enough that threads which wake one after the other still
/// overlap, short enough that a lane's ring (see [`RING`]) holds all of it.
const BURST: u32 = 40;
/// Records of a lane's ring that hold a burst: its spans, and an iteration a round.
pub const RING: usize = (BURST * (SPANS + 1)).next_power_of_two() as usize;

/// What a span cost when so many threads made some at once.
#[derive(Clone, Copy, Debug)]
pub struct AtOnce {
    /// Threads.
    pub threads: usize,
    /// Nanoseconds a span, on the clock of the thread that makes it: the median of all rounds of all threads. A round in
    /// which another thread got the core is long, but it is the rarer kind and does not move the median.
    pub span_ns: f64,
    /// Nanoseconds of a core that a span took, everything included, collector's thread and all: wall time from the first
    /// thread's begin to the last one's end, times the cores that these threads can use, by spans.
    pub core_ns: f64,
}

/// Measures `bursts` bursts on so many threads.
pub fn at_once(subject: &dyn Subject, threads: usize, bursts: usize) -> AtOnce {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let barrier = Barrier::new(threads);
    let work = || {
        let _entered = subject.enter();
        let mut rounds = Vec::with_capacity(bursts * BURST as usize);
        let mut bursts_at = Vec::with_capacity(bursts);
        for burst in 0..=bursts {
            barrier.wait();
            let begin = Instant::now();
            let took = (0..BURST).map(|_| subject.round(SPANS)).map(|took| took.as_nanos() as f64 / f64::from(SPANS));
            let took: Vec<f64> = took.collect();
            // The first burst warms up.
            if burst > 0 {
                rounds.extend(took);
                bursts_at.push((begin, Instant::now()));
            }
            if barrier.wait().is_leader() {
                subject.settle();
            }
        }
        (rounds, bursts_at)
    };
    let results: Vec<_> = thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let rounds: Vec<f64> = results.iter().flat_map(|(rounds, _)| rounds.iter().copied()).collect();
    let walls: Vec<f64> = (0..bursts).filter_map(|burst| wall(results.iter().map(|(_, at)| at[burst]))).collect();
    let spans = threads as f64 * f64::from(BURST) * f64::from(SPANS);
    let core_ns = spread(&walls).median * threads.min(cores) as f64 / spans;
    AtOnce { threads, span_ns: spread(&rounds).median, core_ns }
}

/// Nanoseconds from the first begin to the last end.
fn wall(bursts: impl Iterator<Item = (Instant, Instant)> + Clone) -> Option<f64> {
    let begin = bursts.clone().map(|(begin, _)| begin).min()?;
    let end = bursts.map(|(_, end)| end).max()?;
    Some(end.duration_since(begin).as_nanos() as f64)
}
