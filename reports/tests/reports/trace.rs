//! Exported traces, read back without any help of what wrote them.

use crate::support::{Builder, MS, on_gpu, small_run};
use crate::trace_reader::read;
use dflash_reports::timeline::record::{
    Anchor, Counter, CounterId, DeviceTime, Flow, FlowEnd, Kind, Lane, LaneId, Mark, OpenSpan, Sample, Severity,
};
use dflash_reports::timeline::{Manifest, RunDir, Timeline};
use dflash_reports::trace::{Counts, Options, Source, chrome, perfetto};
use dflash_reports::window::Window;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

fn options() -> Options {
    Options { name: "run".into(), ..Options::default() }
}

fn exported(timeline: &Timeline, options: &Options) -> (Vec<u8>, Counts) {
    let mut bytes = Vec::new();
    let counts = perfetto(&Source::memory(timeline), options, &mut bytes).unwrap();
    (bytes, counts)
}

fn as_chrome(timeline: &Timeline, run: Option<&RunDir>) -> (Vec<Value>, Counts, Vec<String>) {
    let mut bytes = Vec::new();
    let (counts, problems) = chrome(&Source::memory(timeline), &options(), run, &mut bytes).unwrap();
    assert!(bytes.ends_with(b"]\n"), "the list is closed");
    (serde_json::from_slice(&bytes).unwrap(), counts, problems)
}

/// Two ranks with everything that a recording can hold.
fn everything() -> Timeline {
    let mut timeline = on_gpu().counter("queue.features.depth", "items", &[0.0, 4.5, f64::NAN]).timeline;
    let spans = timeline.spans.clone();
    timeline.lanes.push(Lane { name: "target:0".into(), device: "cpu".into(), rank: 1 });
    timeline.lanes.push(Lane { name: "drafter:0".into(), device: "cuda:0".into(), rank: 1 });
    let moved = |lane: u32| {
        spans.iter().map(move |span| dflash_reports::timeline::record::Span { lane: LaneId(lane), ..*span })
    };
    timeline.spans.extend(moved(1).chain(moved(2)).collect::<Vec<_>>());
    let counter = CounterId(timeline.counters.len() as u32);
    timeline.counters.push(Counter { name: "gpu.cuda:0.power".into(), unit: "W".into(), rank: 1 });
    timeline.samples.push(Sample { counter, time_ns: 5_000_000_000, value: 431.25 });
    let flow = |id, end, lane, time_ns| Flow { id, end, lane: LaneId(lane), time_ns };
    timeline.flows = vec![
        flow(1, FlowEnd::Put, 1, 1_000_000),
        flow(2, FlowEnd::Put, 1, 2_000_000),
        flow(1, FlowEnd::Take, 2, 3_000_000),
        flow(3, FlowEnd::Take, 2, 4_000_000),
        flow(3, FlowEnd::Put, 1, 4_000_400),
        flow(2, FlowEnd::Take, 2, 5_000_000),
        flow(4, FlowEnd::Put, 1, 6_000_000),
    ];
    timeline.marks = vec![Mark { time_ns: 7, severity: Severity::Warning, text: "a \"mark\"; <b>".into() }];
    timeline.anchors = vec![Anchor { monotonic_ns: 1_000, realtime_ns: 1_796_035_383_000_000_000 }];
    timeline.open = vec![OpenSpan { name: timeline.spans[0].name, lane: LaneId(1), begin_ns: 400_000_000 }];
    timeline
}

#[test]
fn counts_and_times_are_those_of_the_timeline() {
    let timeline = everything();
    let (bytes, counts) = exported(&timeline, &options());
    let trace = read(&bytes);
    for (id, lane) in timeline.lanes.iter().enumerate() {
        let of_lane = || timeline.spans.iter().filter(move |span| span.lane == LaneId(id as u32));
        for name in &timeline.names {
            let spans: Vec<_> = of_lane().filter(|span| timeline.name(span.name) == name).collect();
            let process = format!("rank {}: run", lane.rank);
            let told = |track: String| trace.slices.get(&(track, name.clone())).copied().unwrap_or_default();
            let open =
                timeline.open.iter().filter(|o| o.lane == LaneId(id as u32) && timeline.name(o.name) == name).count()
                    as u64;
            let host: u64 = spans.iter().map(|span| span.duration_ns).sum();
            let (count, ns) = told(format!("{} < {process}", lane.name));
            assert_eq!((count, ns >= host), (spans.len() as u64 + open, true), "{name} on {}", lane.name);
            let times: Vec<DeviceTime> = spans.iter().filter_map(|span| span.device).collect();
            let on_device = told(format!("stream of {} < {} < {process}", lane.name, device(&lane.device)));
            assert_eq!(
                on_device,
                (times.len() as u64, times.iter().map(|time| time.duration_ns).sum()),
                "{name} on a device"
            );
        }
    }
    let slices: u64 = trace.slices.values().map(|row| row.0).sum();
    assert_eq!((slices, trace.instants.len() as u64), (counts.slices, counts.instants + 1), "and the totals");
    assert_eq!((counts.flows, counts.clamped, counts.unpaired, counts.not_finite), (3, 1, 1, 1));
    assert_eq!((trace.puts.len(), trace.takes.len()), (3, 3));
    assert_eq!(trace.counters["queue.features.depth < rank 0: run"], ("items".into(), 2));
    assert_eq!(trace.counters["power < GPU 0 < rank 1: run"], ("W".into(), 1), "a sensor stands below its GPU");
    assert!(trace.instants.contains(&("a \"mark\"; <b>".into(), 7)));
    assert_eq!(trace.attributes["dflash.export.flows_clamped"], "1");
    assert!(!trace.torn);
}

fn device(name: &str) -> &str {
    if name == "cuda:0" { "GPU 0" } else { name }
}

#[test]
fn items_that_overlap_stand_on_slots() {
    let trace = read(&exported(&everything(), &options()).0);
    let row = |track: &str| trace.slices.get(&(format!("{track} < rank 1: run"), "handed over".into())).copied();
    assert_eq!(
        row("target:0 → drafter:0"),
        Some((2, 2_000_000)),
        "1 to 3 ms, and the clamped one, which takes no time"
    );
    assert_eq!(row("target:0 → drafter:0 (2) < target:0 → drafter:0"), Some((1, 3_000_000)), "2 to 5 ms");
}

#[test]
fn what_cannot_be_is_left_out_and_counted() {
    let mut timeline = small_run();
    let whole = exported(&timeline, &options()).1;
    timeline.spans[0].begin_ns = -5;
    timeline.spans[1].duration_ns = 8 * 86_400_000_000_000;
    timeline.spans[2].duration_ns = u64::MAX;
    timeline.spans.sort_by_key(|span| (span.lane, span.begin_ns, span.depth));
    let (bytes, counts) = exported(&timeline, &options());
    assert_eq!((counts.implausible, counts.slices), (3, whole.slices - 3));
    read(&bytes);
    assert!(counts.concerns()[0].starts_with("3 spans begin before"), "{:?}", counts.concerns());
}

#[test]
fn a_torn_source_says_so_and_a_live_one_does_not() {
    let mut timeline = small_run();
    timeline.health.ended = false;
    let torn = read(&exported(&timeline, &options()).0);
    assert!(torn.torn && torn.attributes["dflash.state"] == "torn");
    let live = read(&exported(&timeline, &Options { live: true, ..options() }).0);
    assert!(!live.torn && live.attributes["dflash.state"] == "being written");
    let nothing = read(&exported(&Timeline::default(), &options()).0);
    assert!(nothing.slices.is_empty() && nothing.torn);
}

#[test]
fn blocks_of_a_long_run_stand_by_themselves() {
    let mut b = Builder::new().lane("drafter:0");
    for _ in 0..4000 {
        b = b.iteration(Kind::Train, 1_000, |b| {
            b.span("drafter.forward", MS).span("drafter.loss", MS);
        });
    }
    let trace = read(&exported(&b.timeline, &options()).0);
    assert!(trace.blocks > 5, "{}", trace.blocks);
    let told = |name: &str| trace.slices[&("drafter:0 < rank 0: run".to_owned(), name.to_owned())];
    assert_eq!([told("drafter.loss"), told("iteration")], [(4000, 4000 * MS), (4000, 4000 * (2 * MS + 1_000))]);
}

#[test]
fn a_window_keeps_what_meets_it() {
    let timeline = everything();
    let window = Window { from_ns: Some(100_000_000), to_ns: Some(110_000_000), ranks: vec![1], ..Window::default() };
    let part = read(&exported(&timeline, &Options { window, ..options() }).0);
    assert!(part.slices.keys().all(|(track, _)| track.ends_with("< rank 1: run")), "{:?}", part.slices);
    let meets = |begin: i64, ns: u64| begin < 110_000_000 && begin + ns as i64 >= 100_000_000;
    let spans = timeline.spans.iter().filter(|span| timeline.lanes[span.lane.0 as usize].rank == 1);
    let (mut host, mut device) = (0, 0);
    for span in spans {
        host += u64::from(meets(span.begin_ns, span.duration_ns));
        device += u64::from(span.device.is_some_and(|time| meets(time.begin_ns, time.duration_ns)));
    }
    assert!(host > 3);
    // The lane on the CPU has spans with device times in this made-up run, too.
    let told: u64 = part.slices.values().map(|row| row.0).sum();
    assert_eq!(told, host + device);
    let error = perfetto(
        &Source::memory(&timeline),
        &Options { window: Window { lanes: vec!["x".into()], ..Window::default() }, ..options() },
        &mut Vec::new(),
    );
    assert!(error.unwrap_err().to_string().contains("there is no lane `x`"));
}

#[test]
fn chrome_events_nest_and_add_up() {
    let (events, counts, _) = as_chrome(&everything(), None);
    let mut threads: BTreeMap<(u64, u64), Vec<(i64, i64)>> = BTreeMap::new();
    let ns = |value: &Value| (value.as_f64().unwrap() * 1e3).round() as i64;
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let key = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        let begin = ns(&event["ts"]);
        threads.entry(key).or_default().push((begin, begin + ns(&event["dur"])));
    }
    assert_eq!(threads.values().map(|slices| slices.len() as u64).sum::<u64>(), counts.slices);
    for slices in threads.values_mut() {
        slices.sort_by_key(|(begin, end)| (*begin, -end));
        let mut open: Vec<i64> = Vec::new();
        for (begin, end) in slices.iter() {
            open.retain(|end| *end > *begin);
            assert!(open.last().is_none_or(|around| end <= around), "two slices cross");
            open.push(*end);
        }
    }
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).count() as u64;
    assert_eq!((of("s"), of("f"), of("C")), (counts.flows, counts.flows, counts.samples));
    assert!(events.iter().any(|event| event["name"] == "profiler.totals"));
    let (empty, ..) = as_chrome(&Timeline::default(), None);
    assert_eq!(empty.len(), 1, "the totals");
}

/// A run directory with the capture of tests/data, or what is given in its place.
fn captured(trace: Option<&str>) -> (tempfile::TempDir, RunDir) {
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(dir.path(), "captured", Manifest::default()).unwrap();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kernels");
    for name in ["kernels-000001.json", "kernels-000001.meta.json"] {
        std::fs::copy(data.join(name), run.path().join(name)).unwrap();
    }
    if let Some(trace) = trace {
        std::fs::write(run.path().join("kernels-000001.json"), trace).unwrap();
    }
    (dir, run)
}

#[test]
fn kernel_captures_stand_on_the_same_clock() {
    let (_dir, run) = captured(None);
    let (events, counts, problems) = as_chrome(&on_gpu().timeline, Some(&run));
    assert_eq!(problems, [""; 0]);
    assert_eq!((counts.captured, counts.capture_discarded), (12, 5), "of a device, of the host; and what cannot be");
    let kernel = events.iter().find(|event| event["cat"] == "kernel").unwrap();
    // 1 ms after the capture's begin, which is 10 s on the monotonic clock.
    assert_eq!((kernel["ts"].as_f64(), kernel["dur"].as_f64()), (Some(10_001_000.0), Some(8_000.0)));
    let process = |pid: &Value| {
        let named = |e: &&Value| e["name"] == "process_name" && e["pid"] == *pid;
        events.iter().find(named).map(|event| event["args"]["name"].as_str().unwrap()).unwrap()
    };
    assert_eq!(process(&kernel["pid"]), "rank 0 GPU 0", "where the lane's stream is, too");
    let host = events.iter().find(|event| event["name"] == "aten::mm").unwrap();
    assert_eq!(process(&host["pid"]), "rank 0 host, by kernels-000001.json");
}

#[test]
fn a_torn_capture_is_merged_as_far_as_it_goes() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kernels/kernels-000001.json");
    let whole = std::fs::read_to_string(data).unwrap();
    let timeline = on_gpu().timeline;
    for length in (0..whole.len()).step_by(37).filter(|length| whole.is_char_boundary(*length)) {
        let (_dir, run) = captured(Some(&whole[..length]));
        let (_, counts, problems) = as_chrome(&timeline, Some(&run));
        assert!(!problems.is_empty(), "torn after {length} bytes, {counts:?}");
    }
}
