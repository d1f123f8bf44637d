//! A run with everything in it, written as a training writes it: several ranks, lanes and segments, records of several
//! threads one after the other, a restart, sampled device times, counters of every kind.

use dflash_reports::timeline::record::{
    Anchor, Counter, CounterId, DeviceTime, Flow, FlowEnd, Iteration, Kind, Lane, LaneId, Mark, Sample, Severity, Span,
    Stream, StreamId, Totals,
};
use dflash_reports::timeline::{Manifest, RunDir, SegmentWriter};
use std::path::Path;

/// 2026-11-30 12:00 UTC.
const NOON_NS: i64 = 1_796_040_000 * 1_000_000_000;
/// When the clock of the recording begins.
const BEGIN_NS: i64 = 7_000_000_000;
/// An iteration of every lane begins each so many nanoseconds.
const STEP_NS: u64 = 40_000_000;

/// What to write.
pub struct Busy {
    pub ranks: u32,
    /// Drafters of a rank; as many targets.
    pub pairs: u32,
    pub segment_bytes: u64,
    /// Iterations at most.
    pub iterations: u64,
    /// Bytes of a rank after which it ends anyhow.
    pub bytes: u64,
    /// The iteration after which each rank goes back by ten; 0: none.
    pub restart_after: u64,
}

impl Busy {
    /// Writes it; returns the run and its bytes.
    pub fn write(&self, parent: &Path) -> (RunDir, u64) {
        let mut manifest = Manifest::default();
        manifest.host = "one".into();
        let run = RunDir::create(parent, "busy", manifest).unwrap();
        let bytes = (0..self.ranks).map(|rank| Writing::new(&run, self, rank).all(self)).sum();
        (run, bytes)
    }
}

/// A generator of numbers that look like noise (splitmix64).
struct Noise(u64);

impl Noise {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }
}

const TARGET: [&str; 6] =
    ["target.wait", "target.upload", "target.forward", "target.pack", "target.copy", "target.put"];
const DRAFTER: [&str; 11] = [
    "drafter.wait",
    "drafter.upload",
    "drafter.anchors",
    "drafter.mask",
    "drafter.forward",
    "drafter.loss",
    "drafter.backward",
    "drafter.reduce",
    "drafter.clip",
    "drafter.step",
    "drafter.log",
];

struct Writing {
    stream: SegmentWriter,
    rank: u32,
    targets: Vec<LaneId>,
    drafters: Vec<LaneId>,
    counters: Vec<CounterId>,
    noise: Noise,
    /// The step of time; goes on where numbers go back.
    step: u64,
}

const COUNTERS: [(&str, &str); 9] = [
    ("queue.hidden_states.depth", "items"),
    ("queue.hidden_states.capacity", "items"),
    ("gpu.cuda:0.power", "W"),
    ("gpu.cuda:0.energy", "J"),
    ("gpu.cuda:0.throttle", "bits"),
    ("allocator.cuda:0.device_allocations.drafter.step", "calls"),
    ("allocator.cuda:0.reserved", "bytes"),
    ("profiler.writer.cpu", "ns"),
    ("cpu.samples", "samples"),
];

impl Writing {
    fn new(run: &RunDir, busy: &Busy, rank: u32) -> Self {
        let mut stream = SegmentWriter::create(run, rank, busy.segment_bytes).unwrap();
        stream.anchor(&Anchor { monotonic_ns: BEGIN_NS, realtime_ns: NOON_NS });
        let lane = |stream: &mut SegmentWriter, role: &str, at: u32| {
            stream.lane(&Lane { name: format!("{role}:{at}"), device: format!("cuda:{at}"), rank })
        };
        let targets = (0..busy.pairs).map(|at| lane(&mut stream, "target", at)).collect();
        let drafters = (0..busy.pairs).map(|at| lane(&mut stream, "drafter", at)).collect();
        let counter = |stream: &mut SegmentWriter, (name, unit): (&str, &str)| {
            stream.counter(&Counter { name: name.into(), unit: unit.into(), rank })
        };
        let counters: Vec<CounterId> = COUNTERS.map(|both| counter(&mut stream, both)).to_vec();
        stream.sample(&Sample { counter: counters[1], time_ns: BEGIN_NS + 5, value: 3.0 }).unwrap();
        let text = "level stages".to_owned();
        stream.mark(&Mark { time_ns: BEGIN_NS + 9, severity: Severity::Info, text }).unwrap();
        Self { stream, rank, targets, drafters, counters, noise: Noise(u64::from(rank) + 1), step: 0 }
    }

    fn all(mut self, busy: &Busy) -> u64 {
        let (mut number, mut restarted) = (0, busy.restart_after == 0);
        while number < busy.iterations && self.stream.bytes() < busy.bytes {
            self.step(number);
            number += 1;
            if number == busy.restart_after && !restarted {
                (number, restarted, self.step) = (number.saturating_sub(10), true, self.step + 40);
            }
        }
        let bytes = self.stream.bytes();
        self.stream.end(&[], Totals::default()).unwrap();
        bytes
    }

    /// One iteration of every lane. The drafters' records come before the targets' that feed them, as they may.
    fn step(&mut self, number: u64) {
        let begin = BEGIN_NS + 1_000_000 + (self.step * STEP_NS) as i64;
        self.step += 1;
        for at in 0..self.drafters.len() {
            let (drafter, target) = (self.drafters[at], self.targets[at]);
            let slower = if at == 1 { 900_000 } else { 0 };
            self.iteration(drafter, &DRAFTER, number, begin + 9_000_000, 700_000 + slower);
            let id = number * 64 + at as u64;
            let flow = |end, lane, time_ns| Flow { id, end, lane, time_ns };
            self.stream.flow(&flow(FlowEnd::Take, drafter, begin + 9_500_000)).unwrap();
            self.iteration(target, &TARGET, number, begin, 1_200_000);
            let late = self.noise.below(2_000_000) as i64;
            self.stream.flow(&flow(FlowEnd::Put, target, begin + 6_000_000 + late)).unwrap();
        }
        let growing = self.step as f64;
        let values = [(number % 4) as f64, 3.0, 500.0 + (number % 70) as f64, growing * 7.5, (number % 9) as f64];
        for at in [0, 2, 3, 4] {
            // Two threads read the depth; what one has read is written later.
            let early = if at == 0 && number % 2 == 1 { 25_000_000 } else { 0 };
            let time_ns = (begin + at as i64 * 1_000 - early).max(BEGIN_NS);
            self.stream.sample(&Sample { counter: self.counters[at], time_ns, value: values[at] }).unwrap();
        }
        for (at, value) in [(5, (number % 2) as f64), (6, 1e9), (7, growing * 1e4), (8, growing)] {
            self.stream.sample(&Sample { counter: self.counters[at], time_ns: begin + 77, value }).unwrap();
        }
    }

    /// Drafters work on two streams; targets share one of them now and then, and do not say else.
    fn stream_of(&mut self, lane: LaneId, stage: &str, number: u64) -> Option<StreamId> {
        let of = |lanes: &[LaneId]| lanes.iter().position(|known| *known == lane);
        let (at, stream) = match (of(&self.drafters), of(&self.targets)) {
            (Some(at), _) => (at, if stage.ends_with("backward") { 0 } else { 7 }),
            (None, Some(at)) if number.is_multiple_of(8) => (at, 0),
            _ => return None,
        };
        Some(self.stream.stream(&Stream { device: format!("cuda:{at}"), number: stream, rank: self.rank }))
    }

    fn iteration(&mut self, lane: LaneId, stages: &[&str], number: u64, begin_ns: i64, length_ns: u64) {
        let kind = match number {
            0..=2 => Kind::Warmup,
            n if n % 50 == 49 => Kind::Eval,
            n if n % 16 == 7 => Kind::Bare,
            _ => Kind::Train,
        };
        let mut now = begin_ns;
        let iteration = Some(number);
        for (at, stage) in stages.iter().enumerate().filter(|_| kind != Kind::Bare) {
            let duration_ns = length_ns + self.noise.below(length_ns / 3);
            let name = self.stream.name(stage);
            if stage.ends_with("forward") {
                let inner = self.stream.name(if number.is_multiple_of(3) { "sync.layers" } else { "a.layer" });
                let (half, device) = (duration_ns / 2, None);
                let index = Some(number % 5);
                let inside = Span {
                    name: inner,
                    lane,
                    iteration,
                    index,
                    depth: 1,
                    begin_ns: now + 10,
                    duration_ns: half,
                    device,
                };
                self.stream.span(&inside).unwrap();
            }
            let timed = at % 3 == 2 && number.is_multiple_of(4) || stage.ends_with("backward");
            let stream = self.stream_of(lane, stage, number);
            let device =
                timed.then(|| DeviceTime { begin_ns: now + 40_000, duration_ns: duration_ns * 9 / 10, stream });
            let (index, depth) = (None, 0);
            self.stream
                .span(&Span { name, lane, iteration, index, depth, begin_ns: now, duration_ns, device })
                .unwrap();
            now += duration_ns as i64;
        }
        let (duration_ns, cpu_ns) = ((now - begin_ns) as u64 + 30_000, Some(5_000_000 + u64::from(self.rank)));
        let record = Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens: Some(512) };
        self.stream.iteration(&record).unwrap();
    }
}
