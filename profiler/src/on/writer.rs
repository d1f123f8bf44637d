//! The thread `dflash-writer`: empties the rings, writes blocks and iterations.csv, samples the process.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use dflash_timeline::record::{Anchor, Mark, OpenSpan, Severity, Totals};
use dflash_timeline::{IterationsWriter, SegmentWriter};

use super::clock_map::ClockMap;
use super::event::Remark;
use super::feed::Feed;
use super::hub::{Hub, lock};
use super::output::Output;
use super::rows::Rows;
use super::sampler::Sampler;
use crate::{Options, Result};

/// How often the map from ticks to nanoseconds learns.
const LEARN_EVERY: Duration = Duration::from_secs(1);
/// How often the stream says what the date is.
const ANCHOR_EVERY: Duration = Duration::from_secs(10);

/// Everything that the thread owns.
#[derive(Debug)]
pub(crate) struct Writer {
    hub: Arc<Hub>,
    remarks: Receiver<Remark>,
    feeds: Vec<Feed>,
    /// Accounts of the lanes that ended.
    retired: Totals,
    map: ClockMap,
    out: Output,
    sampler: Sampler,
    /// Samples and marks that this thread made.
    own: u64,
    write_every: Duration,
    sample_every: Option<Duration>,
}

impl Writer {
    pub(crate) fn new(hub: Arc<Hub>, remarks: Receiver<Remark>, options: &Options) -> Result<Self> {
        let stream = SegmentWriter::create(&options.run, options.rank, options.segment_bytes)?;
        let csv = IterationsWriter::open(&options.run.iterations_csv())?;
        let anchor = anchor();
        let to_unix_ns = anchor.realtime_ns.saturating_sub(anchor.monotonic_ns);
        let rows = Rows { csv, rank: options.rank, attempt: options.attempt, to_unix_ns };
        let ns_per_tick = hub.clock.duration(1 << 40).as_nanos() as f64 / (1_u64 << 40) as f64;
        let map = ClockMap::new(hub.clock.pair(), ns_per_tick);
        Ok(Self {
            out: Output::new(Arc::clone(&hub), stream, rows, options.rank),
            hub,
            remarks,
            feeds: Vec::new(),
            retired: Totals::default(),
            map,
            sampler: Sampler::default(),
            own: 0,
            write_every: options.write_every,
            sample_every: options.sample_every,
        })
    }

    /// Runs until the profiler ends.
    pub(crate) fn run(mut self) -> Totals {
        let (mut wrote, mut learned, mut sampled, mut anchored) = (Instant::now(), Instant::now(), None, None);
        loop {
            // Looked at before collecting: what was recorded before the stop is collected.
            let stop = self.hub.stop.load(Ordering::Acquire);
            if due(&mut anchored, Some(ANCHOR_EVERY)) {
                self.out.anchor(&anchor());
            }
            if learned.elapsed() >= LEARN_EVERY {
                learned = Instant::now();
                self.map.learn(self.hub.clock.pair());
            }
            self.collect();
            if due(&mut sampled, self.sample_every) || (stop && self.sample_every.is_some()) {
                self.sample();
            }
            if stop {
                return self.end();
            }
            if wrote.elapsed() >= self.write_every {
                wrote = Instant::now();
                self.write();
            }
            thread::park_timeout(self.write_every.saturating_sub(wrote.elapsed()));
        }
    }

    fn collect(&mut self) {
        let new = std::mem::take(&mut *lock(&self.hub.new_lanes));
        self.feeds.extend(new.into_iter().map(|lane| Feed::new(lane, &mut self.out)));
        let (map, out) = (&self.map, &mut self.out);
        let (own, retired) = (&mut self.own, &mut self.retired);
        self.feeds.retain_mut(|feed| {
            let ended = feed.collect(map, out);
            if let Some(text) = feed.new_loss() {
                *own += 1;
                out.mark(&Mark { time_ns: dflash_sys::monotonic_ns(), severity: Severity::Warning, text });
            }
            if ended {
                *retired = retired.plus(&feed.account());
            }
            !ended
        });
        // Bounded, so that counters that never rest cannot keep the thread here.
        for remark in self.remarks.try_iter().take(1 << 16) {
            match remark {
                Remark::Sample { counter, at, value } => {
                    let Some((name, unit)) = lock(&self.hub.counters).get(counter as usize).cloned() else { continue };
                    self.out.sample(&name, &unit, self.map.ns(at), value);
                }
                Remark::Mark { severity, at, text } => {
                    self.out.mark(&Mark { time_ns: self.map.ns(at), severity, text });
                }
                Remark::Stack(stack) => self.out.stack(&stack),
            }
        }
    }

    fn sample(&mut self) {
        let mut readings = self.sampler.sample();
        readings.push(("profiler.cpu".to_owned(), "ns", dflash_sys::thread_cpu_ns() as f64));
        readings.push(("profiler.bytes".to_owned(), "bytes", self.out.bytes() as f64));
        let time_ns = dflash_sys::monotonic_ns();
        for (name, unit, value) in readings {
            self.own += 1;
            self.out.sample(&name, unit, time_ns, value);
        }
    }

    fn write(&mut self) {
        let (open, totals) = self.state();
        self.out.flush(&open, totals);
    }

    fn end(mut self) -> Totals {
        self.collect();
        let (open, totals) = self.state();
        self.out.end(&open, totals)
    }

    /// What is open, and the totals so far.
    fn state(&mut self) -> (Vec<OpenSpan>, Totals) {
        let (map, out) = (&self.map, &mut self.out);
        let open: Vec<OpenSpan> = self.feeds.iter().flat_map(|feed| feed.open(map, out)).collect();
        let totals = Totals { open: open.len() as u64 + self.retired.open, ..self.totals() };
        (open, totals)
    }

    /// The accounts of all lanes, counters and this thread; `written` is the output's to fill in.
    fn totals(&self) -> Totals {
        let lanes = self.feeds.iter().fold(self.retired, |sum, feed| sum.plus(&feed.account()));
        let load = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        let emitted = lanes.emitted + load(&self.hub.remarks_emitted) + self.own;
        let dropped = lanes.dropped + load(&self.hub.remarks_dropped);
        Totals { emitted, dropped, ..lanes }
    }
}

/// Whether it is time again, and if so, notes it.
fn due(last: &mut Option<Instant>, every: Option<Duration>) -> bool {
    let due = every.is_some_and(|every| last.is_none_or(|last| last.elapsed() >= every));
    if due {
        *last = Some(Instant::now());
    }
    due
}

fn anchor() -> Anchor {
    Anchor { monotonic_ns: dflash_sys::monotonic_ns(), realtime_ns: dflash_sys::realtime_ns() }
}
