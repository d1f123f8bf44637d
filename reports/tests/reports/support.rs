//! A builder of small timelines, and of iterations.csv files.

use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::{
    Counter, CounterId, DeviceTime, Iteration, Kind, Lane, LaneId, NameId, Sample, Span, Stream, StreamId,
};

mod rows;

pub use rows::{iterations_csv, times};

pub const MS: u64 = 1_000_000;

/// Builds a timeline lane by lane, iteration by iteration. Stages follow each other without a gap.
pub struct Builder {
    pub timeline: Timeline,
    now: i64,
    depth: u8,
    number: u64,
}

impl Builder {
    pub fn new() -> Self {
        let mut timeline = Timeline::default();
        timeline.health.ended = true;
        Self { timeline, now: 0, depth: 0, number: 0 }
    }

    /// Begins a lane; its time starts at 0.
    pub fn lane(self, name: &str) -> Self {
        self.lane_on(name, "cpu")
    }

    /// Begins a lane on a device.
    pub fn lane_on(mut self, name: &str, device: &str) -> Self {
        let lane = Lane { name: name.into(), device: device.into(), rank: 0 };
        self.timeline.lanes.push(lane);
        (self.now, self.number) = (1_000, 0);
        self
    }

    fn lane_id(&self) -> LaneId {
        LaneId(self.timeline.lanes.len() as u32 - 1)
    }

    fn name(&mut self, name: &str) -> NameId {
        let names = &mut self.timeline.names;
        let at = names.iter().position(|n| n == name).unwrap_or_else(|| {
            names.push(name.into());
            names.len() - 1
        });
        NameId(at as u32)
    }

    /// One iteration: `inside` adds its stages, then `residue_ns` pass.
    pub fn iteration(mut self, kind: Kind, residue_ns: u64, inside: impl FnOnce(&mut Self)) -> Self {
        let begin_ns = self.now;
        inside(&mut self);
        self.now += residue_ns as i64;
        let duration_ns = (self.now - begin_ns) as u64;
        let (lane, number) = (self.lane_id(), self.number);
        let tokens = (kind == Kind::Train).then_some(100);
        let cpu_ns = Some(duration_ns / 2);
        self.timeline.iterations.push(Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens });
        self.number += 1;
        self
    }

    /// A span without children.
    pub fn span(&mut self, name: &str, ns: u64) -> &mut Self {
        self.nested(name, ns, |_| ())
    }

    /// A span whose device time is known.
    pub fn device_span(&mut self, name: &str, ns: u64, device_ns: u64) -> &mut Self {
        let at = self.timeline.spans.len();
        self.span(name, ns);
        let begin_ns = self.timeline.spans[at].begin_ns;
        self.timeline.spans[at].device = Some(DeviceTime { begin_ns, duration_ns: device_ns, stream: None });
        self
    }

    /// A span whose device time begins this long after its host time.
    pub fn launched(&mut self, name: &str, ns: u64, after_ns: u64, device_ns: u64) -> &mut Self {
        let at = self.timeline.spans.len();
        self.device_span(name, ns, device_ns);
        if let Some(device) = &mut self.timeline.spans[at].device {
            device.begin_ns += after_ns as i64;
        }
        self
    }

    /// The last span ran on this stream of a device.
    pub fn on_stream(&mut self, device: &str, number: i64) -> &mut Self {
        let stream = Stream { device: device.to_owned(), number, rank: 0 };
        let streams = &mut self.timeline.streams;
        let at = streams.iter().position(|known| *known == stream).unwrap_or_else(|| {
            streams.push(stream);
            streams.len() - 1
        });
        if let Some(device) = self.timeline.spans.last_mut().and_then(|span| span.device.as_mut()) {
            device.stream = Some(StreamId(at as u32));
        }
        self
    }

    /// Begins the next iteration at this moment.
    pub fn at(mut self, ns: i64) -> Self {
        self.now = ns;
        self
    }

    /// Gives the next iteration this number.
    pub fn numbered(mut self, number: u64) -> Self {
        self.number = number;
        self
    }

    /// A span with a number.
    pub fn indexed(&mut self, name: &str, index: u64, ns: u64) -> &mut Self {
        let at = self.timeline.spans.len();
        self.span(name, ns);
        self.timeline.spans[at].index = Some(index);
        self
    }

    /// A span with children; `own_ns` pass after them.
    pub fn nested(&mut self, name: &str, own_ns: u64, inside: impl FnOnce(&mut Self)) -> &mut Self {
        let (begin_ns, depth, name) = (self.now, self.depth, self.name(name));
        let (lane, iteration) = (self.lane_id(), Some(self.number));
        let at = self.timeline.spans.len();
        let span = Span { name, lane, iteration, index: None, depth, begin_ns, duration_ns: 0, device: None };
        self.timeline.spans.push(span);
        self.depth += 1;
        inside(self);
        self.depth -= 1;
        self.now += own_ns as i64;
        self.timeline.spans[at].duration_ns = (self.now - begin_ns) as u64;
        self
    }

    /// A counter with its readings, one a second.
    pub fn counter(self, name: &str, unit: &str, values: &[f64]) -> Self {
        let seconds = values.iter().enumerate();
        let readings: Vec<(i64, f64)> = seconds.map(|(i, value)| (i as i64 * 1_000_000_000, *value)).collect();
        self.readings(name, unit, &readings)
    }

    /// A counter with its readings and their times.
    pub fn readings(mut self, name: &str, unit: &str, readings: &[(i64, f64)]) -> Self {
        let counter = CounterId(self.timeline.counters.len() as u32);
        self.timeline.counters.push(Counter { name: name.into(), unit: unit.into(), rank: 0 });
        self.timeline.samples.extend(readings.iter().map(|&(time_ns, value)| Sample { counter, time_ns, value }));
        self
    }
}

/// A small run: a target that waits for room, a drafter that is busy, with layers, other kinds and a queue.
pub fn small_run() -> Timeline {
    let mut b = Builder::new().lane("target:0");
    for i in 0..20 {
        b = b.iteration(Kind::Train, 10_000, |b| {
            b.span("target.forward", 6 * MS + i * 10_000).span("target.put", 3 * MS);
        });
    }
    b = b.lane("drafter:0").iteration(Kind::Warmup, 0, |b| {
        b.span("drafter.forward", 900 * MS);
    });
    for i in 0..20 {
        b = b.iteration(Kind::Train, 50_000, |b| {
            b.span("drafter.wait", 20_000);
            b.nested("drafter.forward", MS, |b| {
                b.indexed("drafter.layer", 0, MS).indexed("drafter.layer", 1, MS + i * 1000);
            });
            b.span("drafter.loss", 2 * MS).span("drafter.loss", MS);
        });
    }
    let mut timeline = b.counter("queue.features.depth", "items", &[0.0, 4.0, 2.0]).timeline;
    timeline.totals.emitted = 200;
    timeline.totals.written = 200;
    timeline
}

/// 30 iterations of 10 ms on a GPU: forward runs ahead of the device, clip waits for it.
pub fn on_gpu() -> Builder {
    let mut b = Builder::new().lane_on("drafter:0", "cuda:0");
    for i in 0..30 {
        b = b.iteration(Kind::Train, 0, |b| {
            b.span("drafter.wait", MS).launched("drafter.forward", 2 * MS, 0, 5 * MS);
            b.nested("drafter.clip", MS, |b| {
                b.span("sync.norm", 3 * MS);
            });
            if i % 10 == 0 {
                b.launched("drafter.step", 3 * MS, 0, MS)
            } else {
                b.span("drafter.step", 3 * MS)
            };
        });
    }
    b
}

/// A lane that works on two streams at once: of each iteration's 10 ms, stream 0 has 0-4 and 4-8, stream 7 has 2-9.
pub fn two_streams() -> Builder {
    let mut b = Builder::new().lane_on("drafter:0", "cuda:0");
    for _ in 0..3 {
        b = b.iteration(Kind::Train, MS, |b| {
            b.device_span("drafter.forward", 2 * MS, 4 * MS).on_stream("cuda:0", 0);
            b.device_span("drafter.upload", 2 * MS, 7 * MS).on_stream("cuda:0", 7);
            b.device_span("drafter.backward", 5 * MS, 4 * MS).on_stream("cuda:0", 0);
        });
    }
    b
}
