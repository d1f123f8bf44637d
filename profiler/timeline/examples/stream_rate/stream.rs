//! A stream as a training of eight GPUs makes it: 8 lanes, 576,000 spans and 210,000 counter samples in 405 seconds.

use dflash_timeline::SegmentWriter;
use dflash_timeline::record::{
    Counter, CounterId, DeviceTime, Iteration, Kind, Lane, LaneId, NameId, OpenSpan, Sample, Span, Stream, StreamId,
};

pub const SPANS: u64 = 576_000;
pub const SAMPLES: u64 = 210_000;
const SECONDS: u64 = 405;
/// How often a block is written: as the profiler does.
const BLOCK_NS: i64 = 225_000_000;
pub const LANES: u64 = 8;
/// Stages of an iteration; under the fourth one lie as many spans again, as layers do.
const STAGES: [&str; 6] =
    ["drafter.wait", "drafter.upload", "drafter.mask", "drafter.forward", "drafter.backward", "drafter.step"];
const LAYERS: u64 = 6;

/// What is written, in order.
#[derive(Clone, Debug)]
pub enum Event {
    Span(Span),
    Iteration(Iteration),
    Sample(Sample),
    /// A block's time has passed; this is open.
    Flush(Vec<OpenSpan>),
}

/// Numbers that look random, the same each time.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// The texts of the stream, introduced to a writer.
pub fn introduce(writer: &mut SegmentWriter) {
    for lane in 0..LANES {
        lane_id(writer, lane);
        writer.stream(&Stream { device: format!("cuda:{lane}"), number: 0, rank: 0 });
    }
    for name in STAGES.iter().chain(&["drafter.layer"]) {
        writer.name(name);
    }
    for (name, unit, _) in counters() {
        writer.counter(&Counter { name, unit: unit.into(), rank: 0 });
    }
}

fn lane_id(writer: &mut SegmentWriter, lane: u64) -> LaneId {
    writer.lane(&Lane { name: format!("drafter:{lane}"), device: format!("cuda:{lane}"), rank: 0 })
}

/// Name, unit and how many samples a second.
fn counters() -> Vec<(String, &'static str, u64)> {
    let mut all = Vec::new();
    for gpu in 0..LANES {
        for (sensor, unit) in
            [("utilization", "%"), ("memory.used", "bytes"), ("power", "W"), ("clock.sm", "MHz"), ("temperature", "C")]
        {
            all.push((format!("gpu.{gpu}.{sensor}"), unit, 1));
        }
        all.push((format!("allocator.{gpu}.active"), "bytes", 25));
        all.push((format!("queue.batches.{gpu}.depth"), "items", 32));
    }
    all.extend((0..22).map(|thread| (format!("thread.worker-{thread}.cpu"), "%", 1)));
    all
}

/// The whole stream, in the order of time; with or without device times.
pub fn events(device: bool) -> Vec<Event> {
    let mut dice = Dice::new(1);
    let mut timed: Vec<(i64, Event)> = Vec::new();
    for lane in 0..LANES {
        spans(lane, device, &mut dice, &mut timed);
    }
    samples(&mut dice, &mut timed);
    // Ring after ring is emptied, at each block: within a block each lane's records stand together.
    timed.sort_by_key(|(ns, event)| ((ns - START_NS) / BLOCK_NS, source(event), *ns));
    let mut events = Vec::with_capacity(timed.len() + 2000);
    let mut next = START_NS + BLOCK_NS;
    for (ns, event) in timed {
        while ns >= next {
            let open = (0..LANES as u32)
                .map(|lane| OpenSpan { name: NameId(lane % 6), lane: LaneId(lane), begin_ns: next - 3_141_592 })
                .collect();
            events.push(Event::Flush(open));
            next += BLOCK_NS;
        }
        events.push(event);
    }
    events
}

fn source(event: &Event) -> u32 {
    match event {
        Event::Span(span) => span.lane.0,
        Event::Iteration(iteration) => iteration.lane.0,
        Event::Sample(_) | Event::Flush(_) => u32::MAX,
    }
}

const START_NS: i64 = 86_400_000_000_000;

fn spans(lane: u64, device: bool, dice: &mut Dice, timed: &mut Vec<(i64, Event)>) {
    let per_iteration = STAGES.len() as u64 + LAYERS;
    let iterations = SPANS / LANES / per_iteration;
    let period = SECONDS * 1_000_000_000 / iterations;
    let id = LaneId(lane as u32);
    let mut begin = START_NS + 7_001 * lane as i64;
    for number in 0..iterations {
        let start = begin;
        begin += 40;
        for (stage, _) in STAGES.iter().enumerate() {
            let stage_begin = begin;
            let length = period / STAGES.len() as u64 * 9 / 10;
            let jittered = length + dice.below(length / 6);
            let span = |name: u32, depth: u8, index: Option<u64>, begin_ns: i64, duration_ns: u64, dice: &mut Dice| {
                let device = device.then(|| DeviceTime {
                    begin_ns: begin_ns + 9_000 + dice.below(60_000) as i64,
                    duration_ns: duration_ns - duration_ns / 16 + dice.below(duration_ns / 16),
                    stream: Some(StreamId(lane as u32)),
                });
                let (name, iteration) = (NameId(name), Some(number));
                Span { name, lane: id, iteration, index, depth, begin_ns, duration_ns, device }
            };
            let mut end = stage_begin;
            if stage == 3 {
                for layer in 0..LAYERS {
                    let own = jittered / LAYERS - 200 - dice.below(40_000);
                    let one = span(6, 1, Some(layer), end + 70 + dice.below(90) as i64, own, dice);
                    end = one.begin_ns + own as i64;
                    timed.push((end, Event::Span(one)));
                }
            }
            let duration = jittered.max((end - stage_begin) as u64 + 120);
            let one = span(stage as u32, 0, None, stage_begin, duration, dice);
            begin = stage_begin + duration as i64;
            timed.push((begin, Event::Span(one)));
            begin += 60 + dice.below(200) as i64;
        }
        let duration_ns = (begin - start) as u64;
        let (kind, cpu_ns, tokens) = (Kind::Train, Some(duration_ns / 3), Some(3_000 + dice.below(1_000)));
        let iteration = Iteration { lane: id, number, kind, begin_ns: start, duration_ns, cpu_ns, tokens };
        timed.push((begin, Event::Iteration(iteration)));
        begin += 300 + dice.below(900) as i64;
    }
}

fn samples(dice: &mut Dice, timed: &mut Vec<(i64, Event)>) {
    let all = counters();
    let rate: u64 = all.iter().map(|(_, _, rate)| rate).sum();
    for (counter, (_, unit, own)) in all.iter().enumerate() {
        let count = SAMPLES * own / rate;
        let every = (SECONDS * 1_000_000_000 / count) as i64;
        for n in 0..count as i64 {
            // Those of once a second are read one after the other; the others when something happens.
            let time_ns = if *own == 1 {
                START_NS + n * every + 20_000 * counter as i64 + dice.below(9_000) as i64
            } else {
                START_NS + n * every + dice.below(every as u64) as i64
            };
            let value = match *unit {
                "%" if counter > 60 || all[counter].0.ends_with("cpu") => dice.below(10_000) as f64 / 100.0,
                "%" => dice.below(101) as f64,
                "bytes" => (40_000_000_000 + 512 * dice.below(2_000_000)) as f64,
                "W" => (300_000 + dice.below(400_000)) as f64 / 1000.0,
                "MHz" => (1_200 + 15 * dice.below(50)) as f64,
                "items" => dice.below(9) as f64,
                _ => (30 + dice.below(40)) as f64,
            };
            let sample = Sample { counter: CounterId(counter as u32), time_ns, value };
            timed.push((time_ns, Event::Sample(sample)));
        }
    }
}
