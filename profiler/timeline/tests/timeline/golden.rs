//! The format does not change by accident: a file of today reads tomorrow, byte for byte.

use std::fs;
use std::path::{Path, PathBuf};

use dflash_timeline::Timeline;

use crate::support::{Run, small};

/// Set it to write the golden file anew, after the format's version was raised.
const BLESS: &str = "DFLASH_BLESS";

#[test]
fn version_3_is_written_and_read() {
    let golden = golden(3);
    let run = Run::new();
    let totals = small(&run);
    if std::env::var_os(BLESS).is_some() {
        fs::create_dir_all(golden.parent().unwrap()).unwrap();
        fs::write(&golden, run.bytes()).unwrap();
    }
    let bytes = fs::read(&golden).unwrap();
    assert_eq!(run.bytes(), bytes, "the writer no longer writes {}; see {BLESS}", golden.display());
    let timeline = run.read_as(&bytes);
    assert_eq!(totals.written, 15);
    insta::assert_snapshot!(text(&timeline), @r#"
    ["cuda:0", "target.forward", "drafter.loss", "main", "step", "autograd 0"]
    Lane { name: "target:0", device: "cuda:0", rank: 0 }
    Lane { name: "drafter:0", device: "cpu", rank: 0 }
    Counter { name: "queue.depth", unit: "items", rank: 0 }
    Anchor { monotonic_ns: 1000, realtime_ns: 1700000000000000000 }
    DeviceAnchor { device: NameId(0), device_ns: -7, host_ns: 1500, uncertainty_ns: 40 }
    target.forward lane 0 Some(0) None depth 0 10000 +4000 device 10030 +3900
    target.forward lane 0 Some(1) Some(300) depth 0 15000 +4000 device 15030 +3900 Stream { device: "cuda:0", number: 7, rank: 0 }
    drafter.loss lane 1 None None depth 9 10000 +4000
    drafter.loss lane 1 None Some(300) depth 9 15000 +4000
    Iteration { lane: LaneId(0), number: 0, kind: Warmup, begin_ns: 10000, duration_ns: 4500, cpu_ns: Some(3000), tokens: Some(512) }
    Iteration { lane: LaneId(0), number: 1, kind: Train, begin_ns: 15000, duration_ns: 4500, cpu_ns: Some(3000), tokens: None }
    Sample { counter: CounterId(0), time_ns: 10000, value: 0.0 }
    Sample { counter: CounterId(0), time_ns: 15000, value: 0.5 }
    Flow { id: 0, end: Put, lane: LaneId(0), time_ns: 14200 }
    Flow { id: 0, end: Take, lane: LaneId(1), time_ns: 14300 }
    Flow { id: 1, end: Put, lane: LaneId(0), time_ns: 19200 }
    Flow { id: 1, end: Take, lane: LaneId(1), time_ns: 19300 }
    Mark { time_ns: 30000, severity: Warning, text: "queue full" }
    StackSample { time_ns: 10000, tid: 99, thread: NameId(5), lane: Some(LaneId(1)), iteration: Some(0), spans: [], frames: [NameId(3), NameId(4)] }
    StackSample { time_ns: 15000, tid: 99, thread: NameId(5), lane: None, iteration: None, spans: [NameId(2)], frames: [NameId(3), NameId(4)] }
    LaneTotals { lane: LaneId(0), emitted: 7, written: 6, dropped: 1 }
    open []
    Totals { emitted: 16, written: 15, dropped: 1, open: 0, negative: 0, unresolved: 0, misplaced: 2 }
    "#);
}

#[test]
fn version_2_is_still_read() {
    let run = Run::new();
    let timeline = run.read_as(&fs::read(golden(2)).unwrap());
    assert!(timeline.health.ended && timeline.health.problems.is_empty(), "{:?}", timeline.health);
    insta::assert_snapshot!(text(&timeline), @r#"
    ["cuda:0", "target.forward", "drafter.loss", "main", "step", "autograd 0"]
    Lane { name: "target:0", device: "cuda:0", rank: 0 }
    Lane { name: "drafter:0", device: "cpu", rank: 0 }
    Counter { name: "queue.depth", unit: "items", rank: 0 }
    Anchor { monotonic_ns: 1000, realtime_ns: 1700000000000000000 }
    DeviceAnchor { device: NameId(0), device_ns: -7, host_ns: 1500, uncertainty_ns: 40 }
    target.forward lane 0 Some(0) None depth 0 10000 +4000 device 10030 +3900
    target.forward lane 0 Some(1) Some(300) depth 0 15000 +4000 device 15030 +3900
    drafter.loss lane 1 None None depth 9 10000 +4000
    drafter.loss lane 1 None Some(300) depth 9 15000 +4000
    Iteration { lane: LaneId(0), number: 0, kind: Warmup, begin_ns: 10000, duration_ns: 4500, cpu_ns: Some(3000), tokens: Some(512) }
    Iteration { lane: LaneId(0), number: 1, kind: Train, begin_ns: 15000, duration_ns: 4500, cpu_ns: Some(3000), tokens: None }
    Sample { counter: CounterId(0), time_ns: 10000, value: 0.0 }
    Sample { counter: CounterId(0), time_ns: 15000, value: 0.5 }
    Flow { id: 0, end: Put, lane: LaneId(0), time_ns: 14200 }
    Flow { id: 0, end: Take, lane: LaneId(1), time_ns: 14300 }
    Flow { id: 1, end: Put, lane: LaneId(0), time_ns: 19200 }
    Flow { id: 1, end: Take, lane: LaneId(1), time_ns: 19300 }
    Mark { time_ns: 30000, severity: Warning, text: "queue full" }
    StackSample { time_ns: 10000, tid: 99, thread: NameId(5), lane: Some(LaneId(1)), iteration: Some(0), spans: [], frames: [NameId(3), NameId(4)] }
    StackSample { time_ns: 15000, tid: 99, thread: NameId(5), lane: None, iteration: None, spans: [NameId(2)], frames: [NameId(3), NameId(4)] }
    LaneTotals { lane: LaneId(0), emitted: 7, written: 6, dropped: 1 }
    open []
    Totals { emitted: 16, written: 15, dropped: 1, open: 0, negative: 0, unresolved: 0, misplaced: 2 }
    "#);
}

#[test]
fn version_1_is_still_read() {
    let run = Run::new();
    let timeline = run.read_as(&fs::read(golden(1)).unwrap());
    assert!(timeline.health.ended && timeline.health.problems.is_empty(), "{:?}", timeline.health);
    insta::assert_snapshot!(text(&timeline), @r#"
    ["target.forward", "drafter.loss"]
    Lane { name: "target:0", device: "cuda:0", rank: 0 }
    Lane { name: "drafter:0", device: "cpu", rank: 0 }
    Counter { name: "queue.depth", unit: "items", rank: 0 }
    Anchor { monotonic_ns: 1000, realtime_ns: 1700000000000000000 }
    target.forward lane 0 Some(0) None depth 0 10000 +4000 device 10030 +3900
    target.forward lane 0 Some(1) Some(300) depth 0 15000 +4000 device 15030 +3900
    drafter.loss lane 1 None None depth 9 10000 +4000
    drafter.loss lane 1 None Some(300) depth 9 15000 +4000
    Iteration { lane: LaneId(0), number: 0, kind: Warmup, begin_ns: 10000, duration_ns: 4500, cpu_ns: Some(3000), tokens: Some(512) }
    Iteration { lane: LaneId(0), number: 1, kind: Train, begin_ns: 15000, duration_ns: 4500, cpu_ns: Some(3000), tokens: None }
    Sample { counter: CounterId(0), time_ns: 10000, value: 0.0 }
    Sample { counter: CounterId(0), time_ns: 15000, value: 0.5 }
    Flow { id: 0, end: Put, lane: LaneId(0), time_ns: 14200 }
    Flow { id: 0, end: Take, lane: LaneId(1), time_ns: 14300 }
    Flow { id: 1, end: Put, lane: LaneId(0), time_ns: 19200 }
    Flow { id: 1, end: Take, lane: LaneId(1), time_ns: 19300 }
    Mark { time_ns: 30000, severity: Warning, text: "queue full" }
    open []
    Totals { emitted: 14, written: 13, dropped: 1, open: 0, negative: 0, unresolved: 0, misplaced: 2 }
    "#);
}

fn golden(version: u8) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/version-{version}.dft"))
}

/// One line a record.
fn text(timeline: &Timeline) -> String {
    let mut lines = vec![format!("{:?}", timeline.names)];
    lines.extend(timeline.lanes.iter().map(|lane| format!("{lane:?}")));
    lines.extend(timeline.counters.iter().map(|counter| format!("{counter:?}")));
    lines.extend(timeline.anchors.iter().map(|anchor| format!("{anchor:?}")));
    lines.extend(timeline.device_anchors.iter().map(|anchor| format!("{anchor:?}")));
    for s in &timeline.spans {
        let (name, iteration, index) = (timeline.name(s.name), s.iteration, s.index);
        let place = format!("lane {} {iteration:?} {index:?} depth {}", s.lane.0, s.depth);
        let device = s.device.map(|d| format!(" device {} +{}", d.begin_ns, d.duration_ns)).unwrap_or_default();
        let stream = s.device.and_then(|d| d.stream).and_then(|stream| timeline.stream(stream));
        let stream = stream.map(|stream| format!(" {stream:?}")).unwrap_or_default();
        lines.push(format!("{name} {place} {} +{}{device}{stream}", s.begin_ns, s.duration_ns));
    }
    lines.extend(timeline.iterations.iter().map(|iteration| format!("{iteration:?}")));
    lines.extend(timeline.samples.iter().map(|sample| format!("{sample:?}")));
    lines.extend(timeline.flows.iter().map(|flow| format!("{flow:?}")));
    lines.extend(timeline.marks.iter().map(|mark| format!("{mark:?}")));
    lines.extend(timeline.stacks.iter().map(|stack| format!("{stack:?}")));
    lines.extend(timeline.lane_totals.iter().map(|totals| format!("{totals:?}")));
    lines.extend([format!("open {:?}", timeline.open), format!("{:?}", timeline.totals)]);
    lines.join("\n")
}
