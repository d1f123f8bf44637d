//! Records with any numbers, and usual ones.

use dflash_timeline::record::{
    Anchor, CounterId, DeviceAnchor, DeviceTime, Flow, FlowEnd, Iteration, Kind, LaneId, LaneTotals, Mark, NameId,
    Sample, Severity, Span, StackSample, StreamId,
};
use proptest::prelude::*;

#[derive(Clone, Debug)]
pub enum Record {
    Span(Span),
    Iteration(Iteration),
    Sample(Sample),
    Flow(Flow),
    Mark(Mark),
    Anchor(Anchor),
    DeviceAnchor(DeviceAnchor),
    Stack(StackSample),
    LaneTotals(LaneTotals),
    Flush,
}

/// Ids of texts: as many as are written below.
pub const IDS: u32 = 5;

fn span() -> impl Strategy<Value = Span> {
    let stream = proptest::option::of((0..IDS).prop_map(StreamId));
    let times = (any::<i64>(), any::<u64>(), stream);
    let device = times.prop_map(|(begin_ns, duration_ns, stream)| DeviceTime { begin_ns, duration_ns, stream });
    let place = (0..IDS, 0..IDS, proptest::option::of(0..u64::MAX - 1), any::<Option<u64>>(), any::<u8>());
    (place, any::<i64>(), any::<u64>(), proptest::option::of(device)).prop_map(
        |(place, begin_ns, duration_ns, device)| {
            let (name, lane, iteration, index, depth) = place;
            Span { name: NameId(name), lane: LaneId(lane), iteration, index, depth, begin_ns, duration_ns, device }
        },
    )
}

/// Spans as they mostly are: near each other, with indices in turn, and numbers at the edges of what a length holds.
fn usual_span() -> impl Strategy<Value = Span> {
    let edge = || (0..5_usize, -2..3_i64).prop_map(|(edge, by)| [0, 1 << 8, 1 << 16, 1 << 24, 1 << 32][edge] + by);
    let number = move || edge().prop_map(|number| number.unsigned_abs());
    let stream = proptest::option::of((0..2_u32).prop_map(StreamId));
    let device = proptest::option::of((edge(), number(), stream));
    let place = (0..2_u32, 0..2_u32, proptest::option::of(0..2_u64), proptest::option::of(0..3_u64), 0..2_u8);
    (place, edge(), number(), device).prop_map(
        |((name, lane, iteration, index, depth), begin_ns, duration_ns, device)| {
            let device = device.map(|(since, duration_ns, stream)| DeviceTime {
                begin_ns: begin_ns + since,
                duration_ns,
                stream,
            });
            Span { name: NameId(name), lane: LaneId(lane), iteration, index, depth, begin_ns, duration_ns, device }
        },
    )
}

fn iteration() -> impl Strategy<Value = Iteration> {
    let kinds = [Kind::Train, Kind::Warmup, Kind::Checkpoint, Kind::Eval, Kind::Bare, Kind::Drain];
    let numbers = (any::<u64>(), any::<i64>(), any::<u64>(), any::<Option<u64>>(), any::<Option<u64>>());
    (0..IDS, 0..kinds.len(), numbers).prop_map(move |(lane, kind, (number, begin_ns, duration_ns, cpu_ns, tokens))| {
        Iteration { lane: LaneId(lane), number, kind: kinds[kind], begin_ns, duration_ns, cpu_ns, tokens }
    })
}

fn stack() -> impl Strategy<Value = StackSample> {
    let names = || proptest::collection::vec((0..IDS).prop_map(NameId), 0..40);
    let who = (any::<i64>(), any::<u32>(), 0..IDS, proptest::option::of((0..IDS).prop_map(LaneId)));
    (who, proptest::option::of(0..u64::MAX - 1), names(), names()).prop_map(|(who, iteration, spans, frames)| {
        let (time_ns, tid, thread, lane) = who;
        StackSample { time_ns, tid, thread: NameId(thread), lane, iteration, spans, frames }
    })
}

fn device_anchor() -> impl Strategy<Value = DeviceAnchor> {
    (0..IDS, any::<i64>(), any::<i64>(), any::<u64>()).prop_map(|(device, device_ns, host_ns, uncertainty_ns)| {
        DeviceAnchor { device: NameId(device), device_ns, host_ns, uncertainty_ns }
    })
}

fn lane_totals() -> impl Strategy<Value = LaneTotals> {
    (0..IDS, any::<u64>(), any::<u64>(), any::<u64>()).prop_map(|(lane, emitted, written, dropped)| LaneTotals {
        lane: LaneId(lane),
        emitted,
        written,
        dropped,
    })
}

pub fn record() -> impl Strategy<Value = Record> {
    let value =
        prop_oneof![any::<f64>(), any::<i32>().prop_map(f64::from), Just(-0.0), Just(9e15), Just(f64::INFINITY)];
    let sample = (0..IDS, any::<i64>(), value).prop_map(|(counter, time_ns, value)| Sample {
        counter: CounterId(counter),
        time_ns,
        value,
    });
    let flow = (any::<u64>(), any::<bool>(), 0..IDS, any::<i64>()).prop_map(|(id, put, lane, time_ns)| Flow {
        id,
        end: if put { FlowEnd::Put } else { FlowEnd::Take },
        lane: LaneId(lane),
        time_ns,
    });
    let mark = (any::<i64>(), any::<bool>(), any::<String>()).prop_map(|(time_ns, info, text)| Mark {
        time_ns,
        severity: if info { Severity::Info } else { Severity::Warning },
        text,
    });
    let anchor = (any::<i64>(), any::<i64>())
        .prop_map(|(monotonic_ns, realtime_ns)| Record::Anchor(Anchor { monotonic_ns, realtime_ns }));
    prop_oneof![
        8 => span().prop_map(Record::Span),
        16 => usual_span().prop_map(Record::Span),
        3 => iteration().prop_map(Record::Iteration),
        2 => sample.prop_map(Record::Sample),
        1 => flow.prop_map(Record::Flow),
        1 => mark.prop_map(Record::Mark),
        1 => anchor,
        1 => device_anchor().prop_map(Record::DeviceAnchor),
        1 => stack().prop_map(Record::Stack),
        1 => lane_totals().prop_map(Record::LaneTotals),
        1 => Just(Record::Flush),
    ]
}
