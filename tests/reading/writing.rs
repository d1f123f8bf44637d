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

/// Lanes with their device and stages: name and milliseconds of 100.
const LANES: [(&str, &str, &[(&str, i64)]); 3] = [
    ("loader", "cpu", &[("load.read", 5), ("load.tokenize", 25), ("load.put", 69)]),
    ("target:0", "cuda:0", &[("target.wait", 1), ("target.forward", 66), ("target.put", 32)]),
    ("drafter:0", "cuda:1", &[("drafter.wait", 4), ("drafter.forward", 30), ("drafter.backward", 55), ("drafter.step", 10)]),
];

/// A run that is being written by a thread of the test, until it is dropped.
pub struct Writing {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Writing {
    /// Begins a run under `runs/`.
    pub fn start(directory: &Path) -> Self {
        let run = RunDir::create(&directory.join("runs"), "written", Manifest::default()).unwrap();
        let done = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&done);
        let thread = thread::spawn(move || write(&run, &stop));
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

fn write(run: &RunDir, done: &AtomicBool) {
    let mut stream = SegmentWriter::create(run, 0, 64 << 20).unwrap();
    let realtime_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64;
    stream.anchor(&Anchor { monotonic_ns: 0, realtime_ns });
    let lanes = LANES.map(|(name, device, _)| stream.lane(&Lane { name: name.into(), device: device.into(), rank: 0 }));
    let counters = ["queue.features.depth", "gpu.cuda:0.utilization", "gpu.cuda:0.power", "gpu.cuda:1.utilization", "thread.drafter:0.cpu"]
        .map(|name| stream.counter(&Counter { name: name.into(), unit: "%".into(), rank: 0 }));
    let mut metrics = MetricsWriter::open(&run.metrics_csv(), 0).unwrap();
    for number in 0_u64.. {
        if done.load(Ordering::Relaxed) {
            stream.end(&[], Totals::default()).unwrap();
            return;
        }
        tick(&mut stream, number, &lanes, &counters);
        stream.flush(&[], Totals::default()).unwrap();
        let loss = Some(9.0 / (1.0 + number as f64 / 50.0));
        metrics.write(&MetricsRow { attempt: 1, step: number, loss, ..MetricsRow::default() }).unwrap();
        thread::sleep(TICK);
    }
}

/// One iteration of each lane, one batch handed over, one reading of each counter; a little different each time.
fn tick(stream: &mut SegmentWriter, number: u64, lanes: &[LaneId], counters: &[CounterId]) {
    let begin_ns = number as i64 * 100 * MILLISECOND;
    let wobble = (number * 7919 % 97) as i64 * MILLISECOND / 100;
    for (lane, (_, _, stages)) in lanes.iter().zip(LANES) {
        let mut now = begin_ns;
        for (stage, milliseconds) in stages {
            let name = stream.name(stage);
            let duration_ns = (milliseconds * MILLISECOND + wobble / 4) as u64;
            let (index, iteration, device) = (None, Some(number), None);
            stream.span(&Span { name, lane: *lane, iteration, index, depth: 0, begin_ns: now, duration_ns, device }).unwrap();
            now += duration_ns as i64;
        }
        let duration_ns = (now - begin_ns) as u64;
        let (kind, cpu_ns, tokens) = (Kind::Train, Some(duration_ns / 2), Some(512));
        stream.iteration(&Iteration { lane: *lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens }).unwrap();
    }
    for (at, counter) in counters.iter().enumerate() {
        let value = 50.0 + 40.0 * ((number as f64 / 20.0) + at as f64).sin();
        stream.sample(&Sample { counter: *counter, time_ns: begin_ns, value }).unwrap();
    }
    for (lane, end, after) in [(1, FlowEnd::Put, 60), (2, FlowEnd::Take, 90)] {
        stream.flow(&Flow { id: number, end, lane: lanes[lane], time_ns: begin_ns + after * MILLISECOND }).unwrap();
    }
}
