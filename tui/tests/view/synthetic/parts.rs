//! What a made-up timeline is put together from.

use super::{LENGTH, SECOND, Stage};
use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::{
    Counter, CounterId, DeviceTime, Flow, FlowEnd, Iteration, Kind, Lane, LaneId, Mark, NameId, OpenSpan, Sample,
    Severity, Span,
};

/// Readings once a second.
pub fn add_sample_counter(timeline: &mut Timeline, name: &str, unit: &str, value: impl Fn(f64) -> f64) {
    let counter = CounterId(timeline.counters.len() as u32);
    timeline.counters.push(Counter { name: name.to_owned(), unit: unit.to_owned(), rank: 0 });
    for second in 0..LENGTH / SECOND {
        timeline.samples.push(Sample { counter, time_ns: second * SECOND, value: value(second as f64) });
    }
}

pub fn add_gpu(timeline: &mut Timeline, gpu: usize) {
    let phase = gpu as f64;
    let mut add = |sensor: &str, unit: &str, value: &dyn Fn(f64) -> f64| {
        add_sample_counter(timeline, &format!("gpu.cuda:{gpu}.{sensor}"), unit, value);
    };
    let gibibyte = f64::from(1 << 30);
    add("utilization", "%", &|t| (70.0 + 28.0 * (t / 4.0 + phase).sin()).round());
    add("memory.used", "bytes", &|_| (60.0 + phase % 7.0 * 9.0) * gibibyte);
    add("memory.total", "bytes", &|_| 139.8 * gibibyte);
    add("power", "W", &|t| 480.0 + 150.0 * (t / 4.0 + phase).sin());
    add("power.limit", "W", &|_| 700.0);
    add("clock.sm", "MHz", &|_| 1980.0 - (phase * 15.0) % 400.0);
    add("temperature", "°C", &|t| 52.0 + phase % 9.0 + t / 10.0);
    // The fourth GPU of each eight is at its power limit, the seventh too hot.
    add("throttle", "bits", &|_| match gpu % 8 {
        3 => 4.0,
        6 => f64::from(0x20 | 4),
        _ => 0.0,
    });
}

pub fn add_threads(timeline: &mut Timeline) {
    let lanes: Vec<String> = timeline.lanes.iter().map(|lane| lane.name.clone()).collect();
    for (index, lane) in lanes.iter().enumerate() {
        add_sample_counter(timeline, &format!("thread.{lane}.cpu"), "%", |t| 60.0 + index as f64 + 9.0 * t.sin());
    }
    add_sample_counter(timeline, "thread.dflash-nvml.cpu", "%", |_| 0.4);
    add_sample_counter(timeline, "thread.pt_autograd_0.cpu", "%", |t| 31.0 + t / 10.0);
    add_sample_counter(timeline, "thread.gone.cpu", "%", |_| 0.0);
    add_sample_counter(timeline, "process.cpu", "%", |_| 245.0);
    add_sample_counter(timeline, "process.rss", "bytes", |_| 3.5 * f64::from(1 << 30));
    add_sample_counter(timeline, "profiler.cost.drafter:0.low", "%", |_| 0.11);
    add_sample_counter(timeline, "profiler.cost.drafter:0.high", "%", |_| 0.34);
    add_sample_counter(timeline, "allocator.cuda:0.reserved", "bytes", |_| 12.0 * f64::from(1 << 30));
}

/// A batch goes from the loader to a target, and from there to a drafter.
pub fn add_flows(timeline: &mut Timeline) {
    let lane = |prefix: &str| timeline.lanes.iter().position(|lane| lane.name.starts_with(prefix));
    let (Some(loader), Some(target), Some(drafter)) = (lane("loader"), lane("target:0"), lane("drafter:0")) else {
        return;
    };
    for id in 0..(LENGTH / (SECOND / 7)) as u64 {
        let at = id as i64 * SECOND / 7;
        let mut end = |lane: usize, end, time_ns| {
            timeline.flows.push(Flow { id, end, lane: LaneId(lane as u32), time_ns });
        };
        end(loader, FlowEnd::Put, at);
        end(target, FlowEnd::Take, at + 30_000_000);
        end(target, FlowEnd::Put, at + 120_000_000);
        end(drafter, FlowEnd::Take, at + 180_000_000);
    }
}

pub fn add_marks(timeline: &mut Timeline) {
    let mut mark = |second: i64, severity, text: &str| {
        timeline.marks.push(Mark { time_ns: second * SECOND, severity, text: text.to_owned() });
    };
    mark(1, Severity::Info, "level: off -> stages, by ctl");
    mark(12, Severity::Info, "the learning rate was lowered");
    mark(21, Severity::Info, "checkpoint written: runs/demo/checkpoints/step-000200");
    let long = "cuda:0 is slowed by a hardware slowdown (temperature, power brake or a fast power trigger); what it does \
                meanwhile is not its usual speed, and its numbers should not be compared";
    mark(33, Severity::Warning, long);
}

pub fn add_lane(timeline: &mut Timeline, name: &str, device: &str, stages: &[Stage]) {
    let lane = LaneId(timeline.lanes.len() as u32);
    timeline.lanes.push(Lane { name: name.to_owned(), device: device.to_owned(), rank: 0 });
    let mut now = 0;
    for number in 0.. {
        let begin_ns = now;
        for (index, (stage, usual)) in stages.iter().enumerate() {
            let phase = number as f64 * 0.7 + index as f64 * 1.9 + f64::from(lane.0);
            let duration_ns = (usual * (1.0 + 0.2 * phase.sin()) * 1e6) as u64;
            if *stage != "residue" {
                let on_device = device.starts_with("cuda") && (stage.contains("ward") || stage.contains("loss"));
                let device =
                    on_device.then_some(DeviceTime { begin_ns: now, duration_ns: duration_ns * 9 / 10, stream: None });
                let name = name_id(timeline, stage);
                let iteration = Some(number);
                timeline.spans.push(Span {
                    name,
                    lane,
                    iteration,
                    index: None,
                    depth: 0,
                    begin_ns: now,
                    duration_ns,
                    device,
                });
            }
            now += duration_ns as i64;
        }
        if now > LENGTH {
            timeline.spans.retain(|span| span.lane != lane || span.iteration != Some(number));
            let name = name_id(timeline, stages[1].0);
            timeline.open.push(OpenSpan { name, lane, begin_ns });
            return;
        }
        let duration_ns = now.abs_diff(begin_ns);
        let cpu_ns = Some(duration_ns * 7 / 10);
        let kind = if number == 0 { Kind::Warmup } else { Kind::Train };
        timeline.iterations.push(Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens: Some(512) });
    }
}

pub fn name_id(timeline: &mut Timeline, name: &str) -> NameId {
    let at = timeline.names.iter().position(|known| known == name).unwrap_or_else(|| {
        timeline.names.push(name.to_owned());
        timeline.names.len() - 1
    });
    NameId(at as u32)
}

pub fn add_queue(timeline: &mut Timeline, name: &str, capacity: f64, depth: impl Fn(f64) -> f64) {
    let first = timeline.counters.len() as u32;
    for part in ["depth", "capacity"] {
        let name = format!("queue.{name}.{part}");
        timeline.counters.push(Counter { name, unit: "items".to_owned(), rank: 0 });
    }
    timeline.samples.push(Sample { counter: CounterId(first + 1), time_ns: 0, value: capacity });
    for tick in 0..LENGTH / (SECOND / 10) {
        let value = depth(tick as f64 / 10.0).min(capacity).round();
        timeline.samples.push(Sample { counter: CounterId(first), time_ns: tick * SECOND / 10, value });
    }
    timeline.samples.sort_by_key(|sample| sample.time_ns);
}
