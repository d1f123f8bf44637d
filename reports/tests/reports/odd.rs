//! Records that no clock makes but that a damaged or foreign file may hold: every form must bear them.

use dflash_reports::history::History;
use dflash_reports::report::{Charts, Report, figures_csv, html, markdown, stages_csv, table};
use dflash_reports::text::Look;
use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::{
    Anchor, Counter, CounterId, DeviceTime, Flow, FlowEnd, Iteration, Kind, Lane, LaneId, NameId, Sample, Span,
};
use dflash_reports::window::{Selection, Window};
use proptest::prelude::*;

const NAMES: [&str; 5] = ["drafter.wait", "drafter.forward", "sync.x", "target.put", "drafter.reduce"];
const COUNTERS: [&str; 7] = [
    "queue.a.depth",
    "queue.a.capacity",
    "gpu.0.throttle",
    "gpu.0.power",
    "gpu.0.energy",
    "profiler.cpu",
    "allocator.cuda:0.reserved",
];

fn time() -> impl Strategy<Value = i64> {
    prop_oneof![4 => 0_i64..2_000, 1 => Just(i64::MIN), 1 => Just(i64::MAX), 1 => any::<i64>()]
}

fn length() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0_u64..500, 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![4 => -5.0..50.0, 1 => Just(f64::NAN), 1 => Just(f64::INFINITY), 1 => Just(1e300), 1 => Just(-0.0)]
}

fn kind() -> impl Strategy<Value = Kind> {
    let all = [Kind::Train, Kind::Train, Kind::Warmup, Kind::Checkpoint, Kind::Eval, Kind::Bare, Kind::Drain];
    (0..all.len()).prop_map(move |at| all[at])
}

prop_compose! {
    fn span()(name in 0_u32..6, lane in 0_u32..4, iteration in prop::option::of(0_u64..5), depth in 0_u8..4, begin_ns in time(),
        duration_ns in length(), device in prop::option::of((time(), length()))) -> Span {
        let device = device.map(|(begin_ns, duration_ns)| DeviceTime { begin_ns, duration_ns, stream: None });
        Span { name: NameId(name), lane: LaneId(lane), iteration, index: None, depth, begin_ns, duration_ns, device }
    }
}

prop_compose! {
    fn iteration()(lane in 0_u32..4, number in 0_u64..5, kind in kind(), begin_ns in time(), duration_ns in length(),
        cpu_ns in prop::option::of(length()), tokens in prop::option::of(length())) -> Iteration {
        Iteration { lane: LaneId(lane), number, kind, begin_ns, duration_ns, cpu_ns, tokens }
    }
}

prop_compose! {
    fn sample()(counter in 0_u32..8, time_ns in time(), value in value()) -> Sample {
        Sample { counter: CounterId(counter), time_ns, value }
    }
}

prop_compose! {
    fn flow()(id in 0_u64..4, put in any::<bool>(), lane in 0_u32..4, time_ns in time()) -> Flow {
        Flow { id, end: if put { FlowEnd::Put } else { FlowEnd::Take }, lane: LaneId(lane), time_ns }
    }
}

prop_compose! {
    fn timeline()(mut spans in prop::collection::vec(span(), 0..40), mut iterations in prop::collection::vec(iteration(), 0..20),
        mut samples in prop::collection::vec(sample(), 0..30), mut flows in prop::collection::vec(flow(), 0..12),
        anchor in prop::option::of((time(), time()))) -> Timeline {
        spans.sort_by_key(|s| (s.lane, s.begin_ns, s.depth));
        iterations.sort_by_key(|i| (i.lane, i.begin_ns));
        samples.sort_by_key(|s| s.time_ns);
        flows.sort_by_key(|f| f.time_ns);
        let lanes = [("drafter:0", 0), ("target:0", 0), ("drafter:0", 1)];
        Timeline {
            names: NAMES.map(str::to_owned).to_vec(),
            lanes: lanes.map(|(name, rank)| Lane { name: name.into(), device: "cuda:0".into(), rank }).to_vec(),
            counters: COUNTERS.map(|name| Counter { name: name.into(), unit: "J".into(), rank: 0 }).to_vec(),
            anchors: anchor.map(|(monotonic_ns, realtime_ns)| Anchor { monotonic_ns, realtime_ns }).into_iter().collect(),
            spans, iterations, samples, flows,
            ..Timeline::default()
        }
    }
}

fn every_form(timeline: &Timeline, window: &Window) {
    let report = Report::of(timeline, window).unwrap();
    let history = History::of(timeline, window, &report.stages, Some(0));
    let page = html(&report, &Charts { history, ..Charts::default() });
    let (stages, figures) = (stages_csv(&report.stages).unwrap(), figures_csv(&report).unwrap());
    let (stages, figures) = (String::from_utf8(stages).unwrap(), String::from_utf8(figures).unwrap());
    for text in [&page, &stages, &figures] {
        for odd in ["NaN", ",inf", ">inf", "\"inf", "-inf"] {
            let found = text.find(odd).map(|at| &text.as_bytes()[at.saturating_sub(100)..(at + 50).min(text.len())]);
            assert_eq!(found.map(String::from_utf8_lossy), None, "{odd}");
        }
    }
    assert!(!table(&report, Look::default()).is_empty() && !markdown(&report).is_empty());
    report.json().unwrap();
}

proptest! {
    #[test]
    fn no_form_fails_on_odd_records(timeline in timeline(), last in 1_u64..1_000_000) {
        every_form(&timeline, &Window::default());
        let last = Some(format!("{last}us").parse().unwrap());
        every_form(&timeline, &Selection { last, ..Selection::default() }.resolve(&timeline).unwrap());
        let window = Some("@1..@2".parse().unwrap());
        if let Ok(window) = (Selection { window, ..Selection::default() }).resolve(&timeline) {
            every_form(&timeline, &window);
        }
    }
}
