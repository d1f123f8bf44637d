//! A training without a training: writes a timeline as it goes, with everything that `dflash top` shows.

use dflash_reports::timeline::record::{
    Anchor, Counter, CounterId, Flow, FlowEnd, Iteration, Kind, Lane, LaneId, Sample, Span, Totals,
};
use dflash_reports::timeline::{Manifest, MetricsRow, MetricsWriter, RunDir, SegmentWriter};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A tick of the recording.
const TICK: Duration = Duration::from_millis(100);
const MILLISECOND: i64 = 1_000_000;

/// Stages of a lane with their milliseconds of 100.
type Stages = &'static [(&'static str, i64)];
const LOADER: Stages = &[("load.read", 5), ("load.tokenize", 25), ("load.put", 69)];
const TARGET: Stages = &[("target.wait", 1), ("target.forward", 66), ("target.put", 32)];
const DRAFTER: Stages = &[("drafter.wait", 4), ("drafter.forward", 30), ("drafter.backward", 55), ("drafter.step", 10)];
const SENSORS: [&str; 8] =
    ["utilization", "memory.used", "memory.total", "power", "power.limit", "clock.sm", "temperature", "throttle"];

/// A run that is being written by a thread of the test, until it is dropped.
pub struct Writing {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writing {
    /// Begins a run under `runs/`: a target and a drafter on two GPUs.
    pub fn start(directory: &Path) -> Self {
        Self::with_gpus(directory, 2)
    }

    /// Begins a run under `runs/` with a lane on each of `gpus` GPUs.
    pub fn with_gpus(directory: &Path, gpus: usize) -> Self {
        let run = RunDir::create(&directory.join("runs"), "written", Manifest::default()).unwrap();
        let done = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&done);
        let thread = thread::spawn(move || {
            let mut writer = Writer::create(&run, gpus);
            for number in 0.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                writer.tick(number);
                thread::sleep(TICK);
            }
            writer.end();
        });
        Self { done, thread: Some(thread) }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        self.done.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Writes a recording tick by tick.
pub struct Writer {
    stream: SegmentWriter,
    metrics: MetricsWriter,
    lanes: Vec<(LaneId, Stages)>,
    counters: Vec<CounterId>,
}

impl Writer {
    /// Begins the recording of `run`.
    pub fn create(run: &RunDir, gpus: usize) -> Self {
        Self::of_rank(run, 0, gpus)
    }

    /// Begins what one of several processes records.
    pub fn of_rank(run: &RunDir, rank: u32, gpus: usize) -> Self {
        let mut stream = SegmentWriter::create(run, rank, 64 << 20).unwrap();
        let realtime_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64;
        stream.anchor(&Anchor { monotonic_ns: 0, realtime_ns });
        let mut lane = |name: String, device: String| stream.lane(&Lane { name, device, rank });
        let mut lanes = vec![(lane("loader".into(), "cpu".into()), LOADER)];
        for gpu in 0..gpus {
            let (role, stages) = if gpu < gpus / 2 { ("target", TARGET) } else { ("drafter", DRAFTER) };
            lanes.push((lane(format!("{role}:{}", gpu % (gpus / 2).max(1)), format!("cuda:{gpu}")), stages));
        }
        let sensors = (0..gpus).flat_map(|gpu| SENSORS.map(|sensor| format!("gpu.cuda:{gpu}.{sensor}")));
        let names = ["queue.features.depth".to_owned(), "thread.drafter:0.cpu".to_owned()].into_iter().chain(sensors);
        let counters = names.map(|name| stream.counter(&Counter { name, unit: "%".into(), rank })).collect();
        let metrics = if rank == 0 { run.metrics_csv() } else { run.path().join(format!("metrics-{rank}.csv")) };
        let metrics = MetricsWriter::open(&metrics, 0).unwrap();
        Self { stream, metrics, lanes, counters }
    }

    /// One iteration of each lane, one batch handed over, each fifth time a reading of each counter; a little different
    /// each time.
    pub fn tick(&mut self, number: u64) {
        let begin_ns = number as i64 * 100 * MILLISECOND;
        let wobble = (number * 7919 % 97) as i64 * MILLISECOND / 100;
        for (lane, stages) in self.lanes.clone() {
            self.iteration(lane, stages, number, (begin_ns, wobble));
        }
        for (at, counter) in self.counters.iter().enumerate().filter(|_| number.is_multiple_of(5)) {
            let value = 50.0 + 40.0 * ((number as f64 / 20.0) + at as f64).sin();
            self.stream.sample(&Sample { counter: *counter, time_ns: begin_ns, value }).unwrap();
        }
        for (lane, end, after) in [(1, FlowEnd::Put, 60), (2, FlowEnd::Take, 90)] {
            // A process with one GPU has no second lane to hand to.
            let Some((lane, _)) = self.lanes.get(lane).copied() else { continue };
            self.stream.flow(&Flow { id: number, end, lane, time_ns: begin_ns + after * MILLISECOND }).unwrap();
        }
        self.stream.flush(&[], Totals::default()).unwrap();
        let loss = Some(9.0 / (1.0 + number as f64 / 50.0));
        self.metrics.write(&MetricsRow { attempt: 1, step: number, loss, ..MetricsRow::default() }).unwrap();
    }

    fn iteration(&mut self, lane: LaneId, stages: Stages, number: u64, (begin_ns, wobble): (i64, i64)) {
        let mut now = begin_ns;
        for (stage, milliseconds) in stages {
            let name = self.stream.name(stage);
            let duration_ns = (milliseconds * MILLISECOND + wobble / 4) as u64;
            let (index, iteration, device) = (None, Some(number), None);
            let span = Span { name, lane, iteration, index, depth: 0, begin_ns: now, duration_ns, device };
            self.stream.span(&span).unwrap();
            now += duration_ns as i64;
        }
        let duration_ns = (now - begin_ns) as u64;
        let (kind, cpu_ns, tokens) = (Kind::Train, Some(duration_ns / 2), Some(512));
        self.stream.iteration(&Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens }).unwrap();
    }

    /// Ends the recording.
    pub fn end(self) {
        self.stream.end(&[], Totals::default()).unwrap();
    }
}
