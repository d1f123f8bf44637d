//! The thread `dflash-writer`: empties the rings, writes blocks and iterations.csv, samples its own cost.

mod books;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use dflash_timeline::record::{Anchor, Mark, Totals};
use dflash_timeline::{IterationsWriter, SegmentWriter};

use super::account::Source;
use super::clock_map::ClockMap;
use super::constants::Constants;
use super::control::SoFar;
use super::cost::{self, Budget};
use super::event::Remark;
use super::feed::{Desk, Feed};
use super::hub::{Hub, lock};
use super::output::Output;
use super::remarks::RemarksToWrite;
use super::rows::Rows;
use crate::{LaneAccount, Options, Result};

/// How often the map from ticks to nanoseconds learns: from the first time, doubling, to the usual.
const LEARN_FIRST: Duration = Duration::from_millis(100);
const LEARN_EVERY: Duration = Duration::from_secs(1);
/// How often the stream says what the date is, and what became of each lane's records.
const ANCHOR_EVERY: Duration = Duration::from_secs(10);

/// Everything that the thread owns.
#[derive(Debug)]
pub(crate) struct Writer {
    hub: Arc<Hub>,
    remarks: RemarksToWrite,
    feeds: Vec<Feed>,
    /// What the lanes that ended have made, and what went wrong on them.
    retired: Vec<(Source, u64, u64)>,
    retired_faults: Totals,
    map: ClockMap,
    out: Output,
    budget: Budget,
    constants: Constants,
    /// What was said of the thread that syncs.
    sync_problem: Option<String>,
    write_every: Duration,
    sample_every: Option<Duration>,
}

/// What is left of a recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ended {
    pub totals: Totals,
    pub lanes: Vec<LaneAccount>,
}

impl Writer {
    pub(crate) fn new(hub: Arc<Hub>, remarks: RemarksToWrite, options: &Options) -> Result<Self> {
        let stream = SegmentWriter::with_options(&options.run, options.rank, &options.stream)?;
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
            retired: Vec::new(),
            retired_faults: Totals::default(),
            map,
            budget: Budget::new(options.max_overhead),
            constants: Constants::default(),
            sync_problem: None,
            write_every: options.write_every,
            sample_every: options.sample_every,
        })
    }

    /// Runs until the profiler ends. A panic is said at once, not only when somebody ends the recording.
    pub(crate) fn run_or_say(self) -> Ended {
        let hub = Arc::clone(&self.hub);
        catch_unwind(AssertUnwindSafe(|| self.run())).unwrap_or_else(|panic| {
            hub.trouble.add("the thread dflash-writer panicked; report this");
            resume_unwind(panic)
        })
    }

    /// Runs until the profiler ends.
    pub(crate) fn run(mut self) -> Ended {
        let _ = self.hub.call_costs.set(cost::calibrate(&self.hub));
        let (mut wrote, mut learned, mut sampled, mut anchored) = (Instant::now(), Instant::now(), None, None);
        let mut learn_every = LEARN_FIRST;
        loop {
            // Looked at before collecting: what was recorded before the stop is collected.
            let stop = self.hub.stop.load(Ordering::Acquire);
            if due(&mut anchored, Some(ANCHOR_EVERY)) {
                self.out.anchor(&anchor());
                self.count_made();
                self.out.lane_totals();
                self.hub.trouble.note();
            }
            if learned.elapsed() >= learn_every {
                learned = Instant::now();
                learn_every = (learn_every * 2).min(LEARN_EVERY);
                self.map.learn(self.hub.clock.pair());
            }
            self.collect();
            if stop {
                // Whoever is killed while he waits for the device has all but its times.
                self.write();
                self.wait_for_device();
            }
            if due(&mut sampled, self.sample_every) || (stop && self.sample_every.is_some()) {
                self.sample();
                cost::publish(&self.hub, &mut self.feeds, &mut self.out);
            }
            if stop {
                return self.end();
            }
            self.budget.watch(&mut self.feeds, &mut self.out);
            if wrote.elapsed() >= self.write_every {
                wrote = Instant::now();
                self.write();
            }
            thread::park_timeout(self.write_every.saturating_sub(wrote.elapsed()));
        }
    }

    fn collect(&mut self) {
        let deadline = i64::try_from(self.hub.device.timing.deadline.as_nanos()).unwrap_or(i64::MAX);
        self.collect_until(dflash_sys::monotonic_ns().saturating_sub(deadline));
    }

    /// Collects everything; spans that ended before `expired_ns` wait no longer for their device times.
    fn collect_until(&mut self, expired_ns: i64) {
        let timing = &self.hub.device.timing;
        let new = std::mem::take(&mut *lock(&self.hub.new_lanes));
        self.feeds.extend(new.into_iter().map(|lane| Feed::new(lane, &mut self.out, timing)));
        for new in std::mem::take(&mut *lock(&self.hub.device.anchors)) {
            self.out.device_anchor(&new.device, new.device_ns, new.host_ns, new.uncertainty_ns);
        }
        let mut desk = Desk { map: &self.map, out: &mut self.out, timing, expired_ns };
        let (retired, faults) = (&mut self.retired, &mut self.retired_faults);
        self.feeds.retain_mut(|feed| {
            let ended = feed.collect(&mut desk);
            if let Some(text) = feed.new_loss() {
                desk.out.warn(text);
            }
            if ended {
                let (emitted, dropped) = feed.made();
                retired.push((feed.source, emitted, dropped));
                *faults = faults.plus(&feed.faults());
            }
            !ended
        });
        for remark in self.remarks.take() {
            match remark {
                Remark::Sample { counter, at, value } => {
                    let Some((name, unit)) = lock(&self.hub.counters).get(counter as usize).cloned() else { continue };
                    self.out.sample(Source::NOBODY, &name, &unit, self.map.ns(at), value);
                }
                Remark::Mark { severity, at, text } => {
                    self.out.mark(&Mark { time_ns: self.map.ns(at), severity, text });
                }
                Remark::Stack(stack) => self.out.stack(&stack),
            }
        }
    }

    /// Lets the collector of device times come to its end; what it has not found out by then is unresolved.
    fn wait_for_device(&mut self) {
        if self.hub.stop_device() {
            let hub = Arc::clone(&self.hub);
            if !hub.join_device(&mut || self.collect()) {
                self.out.warn("the thread dflash-device hangs in a call to its device; it is left alone".to_owned());
            }
        }
        self.collect_until(i64::MAX);
    }

    fn write(&mut self) {
        self.constants.say(&self.hub, &mut self.out);
        let (timing, expired_ns) = (&self.hub.device.timing, i64::MIN);
        let mut desk = Desk { map: &self.map, out: &mut self.out, timing, expired_ns };
        self.feeds.iter_mut().for_each(|feed| feed.write_ahead(&mut desk));
        let (open, totals) = self.state();
        self.out.flush(&open, totals);
        let totals = Totals { written: self.out.written(), ..totals };
        *lock(&self.hub.so_far) = SoFar { totals, bytes: self.out.bytes() };
    }

    fn end(mut self) -> Ended {
        self.collect_until(i64::MAX);
        let (open, totals) = self.state();
        let (totals, accounts) = self.out.end(&open, totals);
        Ended { totals, lanes: accounts.report() }
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
