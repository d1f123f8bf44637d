//! Whatever is written is read, in any order and with any numbers.

use dflash_timeline::record::{
    Counter, CounterId, DeviceAnchor, DeviceTime, Flow, Iteration, Lane, LaneId, NameId, OpenSpan, Span, Stream,
    StreamId, Totals,
};
use dflash_timeline::{SegmentWriter, Timeline, read};
use proptest::prelude::*;

use crate::any_records::{IDS, Record, record};
use crate::support::{Run, SEGMENT};

/// Writes everything; the expected timeline uses the writer's own ids.
fn write(run: &Run, records: &[Record], open: &[OpenSpan]) -> Timeline {
    let mut expected = Timeline::default();
    let mut writer = SegmentWriter::create(&run.dir, 0, SEGMENT).unwrap();
    for id in 0..IDS {
        let lane = Lane { name: format!("lane:{id}"), device: "cpu".into(), rank: id };
        let counter = Counter { name: format!("counter {id}"), unit: "%".into(), rank: 0 };
        expected.names.push(format!("name.{id}"));
        assert_eq!(writer.name(&expected.names[id as usize]), NameId(id));
        assert_eq!((writer.lane(&lane), writer.counter(&counter)), (LaneId(id), CounterId(id)));
        let stream = Stream { device: "cuda:0".into(), number: i64::from(id) - 2, rank: id };
        assert_eq!(writer.stream(&stream), StreamId(id));
        expected.streams.push(stream);
        expected.lanes.push(lane);
        expected.counters.push(counter);
    }
    for record in records {
        match record {
            Record::Span(r) => (expected.spans.push(*r), writer.span(r).unwrap()).1,
            Record::Iteration(r) => (expected.iterations.push(*r), writer.iteration(r).unwrap()).1,
            Record::Sample(r) => (expected.samples.push(*r), writer.sample(r).unwrap()).1,
            Record::Flow(r) => (expected.flows.push(*r), writer.flow(r).unwrap()).1,
            Record::Mark(r) => (expected.marks.push(r.clone()), writer.mark(r).unwrap()).1,
            Record::Anchor(r) => (expected.anchors.push(*r), writer.anchor(r)).1,
            Record::DeviceAnchor(r) => (expected.device_anchors.push(*r), writer.device_anchor(r)).1,
            Record::Stack(r) => (expected.stacks.push(r.clone()), writer.stack(r).unwrap()).1,
            Record::LaneTotals(r) => {
                expected.lane_totals.retain(|known| known.lane != r.lane);
                expected.lane_totals.push(*r);
                writer.lane_totals(r);
            }
            Record::Flush => writer.flush(open, Totals::default()).unwrap(),
        }
    }
    let nobodys =
        |r: &&Record| matches!(r, Record::Anchor(_) | Record::DeviceAnchor(_) | Record::LaneTotals(_) | Record::Flush);
    let emitted = records.len() as u64 - records.iter().filter(nobodys).count() as u64;
    expected.totals = writer.end(open, Totals { emitted, negative: 3, ..Totals::default() }).unwrap();
    assert_eq!(expected.totals.written, emitted);
    expected.open = open.to_vec();
    expected
}

/// Everything as text with names for ids, sorted, since a reader numbers in the order of appearance.
fn text(timeline: &Timeline) -> Vec<String> {
    let name = |id: NameId| timeline.name(id);
    let lane = |id: LaneId| timeline.lane(id).unwrap().name.as_str();
    let counter = |id: CounterId| &timeline.counters[id.0 as usize].name;
    let mut lines = Vec::new();
    for s in &timeline.spans {
        let device = s.device.map(|device| DeviceTime { stream: None, ..device });
        let stream = s.device.and_then(|device| device.stream).map(|stream| timeline.stream(stream).unwrap());
        let plain = Span { name: NameId(0), lane: LaneId(0), device, ..*s };
        lines.push(format!("{} {} {stream:?} {plain:?}", lane(s.lane), name(s.name)));
    }
    for i in &timeline.iterations {
        lines.push(format!("{} {:?}", lane(i.lane), Iteration { lane: LaneId(0), ..*i }));
    }
    lines.extend(
        timeline.samples.iter().map(|s| format!("{} {} {:x}", counter(s.counter), s.time_ns, s.value.to_bits())),
    );
    lines.extend(timeline.flows.iter().map(|f| format!("{} {:?}", lane(f.lane), Flow { lane: LaneId(0), ..*f })));
    lines.extend(timeline.marks.iter().map(|m| format!("{m:?}")));
    lines.extend(timeline.anchors.iter().map(|a| format!("{a:?}")));
    lines.extend(timeline.device_anchors.iter().map(|a| {
        let plain = DeviceAnchor { device: NameId(0), ..*a };
        format!("{} {plain:?}", name(a.device))
    }));
    lines.extend(timeline.stacks.iter().map(|s| {
        let names = |ids: &[NameId]| ids.iter().map(|id| name(*id)).collect::<Vec<_>>().join(";");
        let lane = s.lane.map_or("none", lane);
        let place = format!("{} {} {} {lane} {:?}", s.time_ns, s.tid, name(s.thread), s.iteration);
        format!("stack {place} {} {}", names(&s.spans), names(&s.frames))
    }));
    lines.extend(
        timeline
            .lane_totals
            .iter()
            .map(|t| format!("{} emitted {} written {} dropped {}", lane(t.lane), t.emitted, t.written, t.dropped)),
    );
    lines.extend(timeline.open.iter().map(|o| format!("open {} {} {}", lane(o.lane), name(o.name), o.begin_ns)));
    lines.push(format!("{:?}", timeline.totals));
    lines.sort();
    lines
}

proptest! {
    #[test]
    fn any_records(
        records in proptest::collection::vec(record(), 0..60),
        open in proptest::collection::vec((0..IDS, 0..IDS, any::<i64>()), 0..4),
    ) {
        let open: Vec<OpenSpan> = open
            .into_iter()
            .map(|(name, lane, begin_ns)| OpenSpan { name: NameId(name), lane: LaneId(lane), begin_ns })
            .collect();
        let run = Run::new();
        let expected = write(&run, &records, &open);
        let found = read(&run.dir).unwrap();
        prop_assert!(found.health.ended && found.health.problems.is_empty(), "{:?}", found.health);
        prop_assert_eq!(text(&found), text(&expected));
        prop_assert!(found.spans.is_sorted_by_key(|s| (s.lane, s.begin_ns, s.depth)));
    }
}

#[test]
fn a_long_stream_is_small() {
    let run = Run::new();
    let mut writer = SegmentWriter::create(&run.dir, 0, SEGMENT).unwrap();
    let lanes: Vec<LaneId> = (0..8)
        .map(|n| writer.lane(&Lane { name: format!("target:{n}"), device: format!("cuda:{n}"), rank: 0 }))
        .collect();
    let names: Vec<NameId> = (0..12).map(|n| writer.name(&format!("target.stage_{n}"))).collect();
    // Jitter of whole nanoseconds, as a real clock has it.
    let mut state = 1_u64;
    let mut jitter = |most: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let mut count = 0;
    for iteration in 0..400_u64 {
        for (n, lane) in lanes.iter().enumerate() {
            let mut begin_ns = 1_000_000_000_000 + iteration as i64 * 100_000_000 + n as i64 * 1_000;
            for name in &names {
                let duration_ns = 1_000_000 + jitter(14_000_000);
                let (name, lane, iteration, index) = (*name, *lane, Some(iteration), None);
                let span = Span { name, lane, iteration, index, depth: 0, begin_ns, duration_ns, device: None };
                writer.span(&span).unwrap();
                begin_ns += duration_ns as i64 + 60 + jitter(200) as i64;
                count += 1;
            }
        }
    }
    writer.end(&[], Totals { emitted: count, ..Totals::default() }).unwrap();
    let size = run.bytes().len() as f64 / count as f64;
    assert!(size < 10.0, "{size} bytes a span");
    assert_eq!(read(&run.dir).unwrap().spans.len() as u64, count);
}
