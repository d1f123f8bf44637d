//! Kernel captures: a small trace by hand (tests/data/kernels), with what is known to go wrong in them.

use crate::support::{Builder, MS};
use dflash_reports::kernels::{Capture, captures};
use dflash_reports::limiting::limiting;
use dflash_reports::report::{Report, figures_csv, markdown, table};
use dflash_reports::stages::Window;
use dflash_reports::text::Look;
use dflash_reports::timeline::record::{Anchor, Kind};
use dflash_reports::timeline::{Manifest, RunDir, Timeline};
use std::path::Path;

const SECOND: i64 = 1_000_000_000;
const TRACE: &str = "kernels-000001.json";

/// Iterations 5 and 6 of a drafter in the capture, 7 after it; a target whose only span reaches over its end.
fn timeline() -> Timeline {
    let iteration = |b: Builder| {
        b.iteration(Kind::Train, 10 * MS, |b| {
            b.launched("drafter.forward", 10 * MS, MS, 20 * MS);
            b.launched("drafter.backward", 20 * MS, 12 * MS, 18 * MS);
        })
    };
    let b = Builder::new().lane_on("drafter:0", "cuda:0").numbered(5).at(10 * SECOND);
    let b = iteration(iteration(b)).iteration(Kind::Train, 0, |b| {
        b.launched("drafter.forward", 10 * MS, 0, 10 * MS);
    });
    let b = b.lane_on("target:0", "cuda:0").at(10 * SECOND + 95_000_000).iteration(Kind::Train, 0, |b| {
        b.launched("target.forward", 10 * MS, 0, 10 * MS);
    });
    b.timeline
}

/// A run with the trace, and what stands beside it.
fn run(dir: &Path, meta: Option<&str>, trace: &str) -> RunDir {
    let run = RunDir::create(dir, "demo", Manifest::default()).unwrap();
    std::fs::write(run.path().join(TRACE), trace).unwrap();
    if let Some(meta) = meta {
        std::fs::write(run.path().join("kernels-000001.meta.json"), meta).unwrap();
    }
    run
}

fn data(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/kernels").join(name)).unwrap()
}

fn only(run: &RunDir, timeline: &Timeline) -> Capture {
    let [capture] = <[Capture; 1]>::try_from(captures(run, timeline, &Window::default()).unwrap()).unwrap();
    capture
}

/// Stage, windows, window, busy and idle in milliseconds.
fn stages(capture: &Capture) -> Vec<(&str, u64, f64, f64, f64)> {
    let ms = |ns: u64| ns as f64 / 1e6;
    let lane = capture.lanes.iter().find(|lane| lane.lane == "drafter:0").unwrap();
    let stages = lane.stages.iter().map(|s| (s.stage.as_str(), s.windows, s.busy));
    let all = stages.chain([("between", lane.iterations, lane.between)]);
    all.map(|(stage, count, b)| (stage, count, ms(b.window_ns), ms(b.busy_ns), ms(b.idle_ns))).collect()
}

#[test]
fn busy_and_idle_by_stage() {
    let dir = tempfile::tempdir().unwrap();
    let run = run(dir.path(), Some(&data("kernels-000001.meta.json")), &data(TRACE));
    let capture = only(&run, &timeline());
    let expected = [
        ("drafter.forward", 2, 40.0, 36.0, 4.0),
        ("drafter.backward", 2, 36.0, 34.0, 2.0),
        ("between", 2, 3.0, 0.5, 2.5),
    ];
    assert_eq!(stages(&capture), expected);
    let devices: Vec<_> =
        capture.devices.iter().map(|d| (d.device.as_str(), d.kernels, d.streams, d.busy.busy_ns)).collect();
    assert_eq!(devices, [("cuda:0", 9, 2, 70_500_000), ("cuda:1", 1, 1, 2_000_000)]);
    assert_eq!(capture.devices[0].busy.share(), Some(0.705));
    assert_eq!((capture.kernels, capture.problems.len()), (10, 0));
    let d = capture.discarded;
    assert_eq!((d.unknown, d.negative, d.backwards, d.endless), (2, 1, 1, 1));
    assert!(capture.lanes.iter().all(|lane| lane.lane == "drafter:0"), "the target's span is cut, so there is no row");
}

#[test]
fn without_the_file_beside_it_the_timelines_anchors_place_it() {
    let dir = tempfile::tempdir().unwrap();
    let run = run(dir.path(), None, &data(TRACE));
    let mut timeline = timeline();
    timeline.anchors = vec![Anchor { monotonic_ns: 0, realtime_ns: 1_764_500_000_000_000_000 }];
    let capture = only(&run, &timeline);
    assert!(capture.problems[0].contains("kernels-000001.meta.json: cannot read it"), "{:?}", capture.problems);
    assert_eq!(stages(&capture)[1], ("drafter.backward", 2, 36.0, 34.0, 2.0));
    assert_eq!(capture.devices[0].busy.window_ns, 79_000_000, "from the first kernel to the last");
    timeline.anchors.clear();
    let capture = only(&run, &timeline);
    assert!(capture.lanes.is_empty() && capture.devices[0].busy.busy_ns == 70_500_000);
    assert!(capture.problems[1].contains("no clock anchor"), "{:?}", capture.problems);
}

#[test]
fn begins_may_be_absolute() {
    // Without a base, begins are microseconds since 1970. Whole ones lose nothing as a fraction.
    let absolute = data(TRACE).replace("\"baseTimeNanoseconds\"", "\"somethingElse\"");
    let shift = |ts: &str, to: &str| (format!("\"ts\": {ts},"), format!("\"ts\": {to},"));
    let begins = ["1000.0", "10000.0", "8000.0", "22000.0", "30000.0", "21200.0", "41000.0", "50000.0", "62000.0"];
    let absolute = begins.iter().fold(absolute, |text, ts| {
        let whole: u64 = ts.trim_end_matches(".0").parse().unwrap();
        let (from, to) = shift(ts, &format!("{}", 1_764_500_010_000_000_u64 + whole));
        text.replace(&from, &to)
    });
    let dir = tempfile::tempdir().unwrap();
    let run = run(dir.path(), Some(&data("kernels-000001.meta.json")), &absolute);
    let capture = only(&run, &timeline());
    let backward = stages(&capture)[1];
    assert!(
        (backward.3 - 34.0).abs() < 0.001,
        "a quarter of a microsecond is what is left of the digits: {backward:?}"
    );
}

#[test]
fn damaged_files_are_read_as_far_as_they_go() {
    let dir = tempfile::tempdir().unwrap();
    let whole = data(TRACE);
    let cut = &whole[..whole.find("50000.0").unwrap()];
    let torn = run(dir.path(), Some("{\"lane\": 5}"), cut);
    let capture = only(&torn, &timeline());
    assert_eq!(capture.kernels, 7);
    assert!(capture.problems[0].starts_with("kernels-000001.meta.json: not understood"), "{:?}", capture.problems);
    assert!(capture.problems[1].starts_with("kernels-000001.json: torn"), "{:?}", capture.problems);
    for nothing in ["", "[]", "{}", "7", "{\"traceEvents\": 7}", "\u{0}\u{0}"] {
        std::fs::write(torn.path().join(TRACE), nothing).unwrap();
        assert_eq!(only(&torn, &timeline()).kernels, 0, "{nothing:?}");
    }
}

/// Threads and waits of the host: one in a span that says so, one that does not, one of a thread that is no lane, one of
/// another lane while the drafter says that it waits.
const WAITS: &str = r#"
{"ph": "M", "name": "thread_name", "pid": 4711, "tid": 4711, "args": {"name": "thread 4711 (drafter:0)"}},
{"ph": "M", "name": "thread_name", "pid": 4711, "tid": 4712, "args": {"name": "thread 4712 (pt_autograd_0)"}},
{"ph": "M", "name": "thread_name", "pid": 4711, "tid": 4713, "args": {"name": "thread 4713 (somebody)"}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 4711, "tid": 4711, "ts": 30500.0, "dur": 1000.0},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 4711, "tid": 4711, "ts": 34000.0, "dur": 500.0},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaEventSynchronize", "pid": 4711, "tid": 4712, "ts": 36000.0, "dur": 1000.0},
{"ph": "M", "name": "thread_name", "pid": 4711, "tid": 4714, "args": {"name": "thread 4714 (target:0)"}},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaStreamSynchronize", "pid": 4711, "tid": 4714, "ts": 30600.0, "dur": 500.0},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaDeviceSynchronize", "pid": 4711, "tid": 4713, "ts": 1.0, "dur": 90000.0},
{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4711, "tid": 4711, "ts": 2.0, "dur": 3.0},
"#;

/// The drafter's two iterations in the capture, each with a wait that says so, and a loader that waits for room.
fn limited(first: Kind) -> Timeline {
    let iteration = |b: Builder, kind: Kind| {
        b.iteration(kind, 8 * MS, |b| {
            b.span("drafter.wait", 0).launched("drafter.forward", 10 * MS, MS, 20 * MS);
            b.launched("drafter.backward", 20 * MS, 12 * MS, 18 * MS).span("sync.metrics", 2 * MS);
        })
    };
    let b = iteration(Builder::new().lane_on("drafter:0", "cuda:0").numbered(5).at(10 * SECOND), first);
    let b = iteration(b, Kind::Train);
    let b = b.lane_on("target:0", "cuda:0").at(10 * SECOND).iteration(Kind::Train, 0, |b| {
        b.launched("target.forward", 10 * MS, 0, 10 * MS).span("target.put", 80 * MS);
    });
    let b = b.lane("loader").at(10 * SECOND).iteration(Kind::Train, 0, |b| {
        b.span("load.put", 90 * MS);
    });
    b.timeline
}

#[test]
fn the_limiting_side_says_what_holds_it_up() {
    let dir = tempfile::tempdir().unwrap();
    let trace = data(TRACE).replacen("\"traceEvents\": [", &format!("\"traceEvents\": [{WAITS}"), 1);
    let run = run(dir.path(), Some(&data("kernels-000001.meta.json")), &trace);
    let (timeline, window) = (limited(Kind::Train), Window::default());
    let mut report = Report::of(&timeline, &window).unwrap();
    assert_eq!(report.limiting.len(), 1, "{}", report.verdict_text);
    report.captures = captures(&run, &timeline, &window).unwrap();
    let waits: Vec<_> = report.captures[0].waits.iter().map(|w| (w.thread.as_str(), w.calls, w.unsaid)).collect();
    assert_eq!(waits, [("drafter:0", 2, 1), ("pt_autograd_0", 1, 1), ("target:0", 1, 1)]);
    report.limiting = limiting(&report.verdict, &report.gaps, &report.captures);
    let of = &report.limiting[0].captures[0];
    // 4 + 2 + 2.5 of 40 + 36 + 3 milliseconds.
    assert_eq!((of.idle.map(|idle| (idle * 79.0 * 1e6).round()), of.unsaid_waits), (Some(8.5e6), Some(2)));
    let text = table(&report, Look::default());
    insta::assert_snapshot!(text[text.find("limiting side").unwrap()..], @r"
    limiting side
      lane       over                                gaps    idle  unsaid waits
      drafter:0  all of the run                     3.8 %     N/A           N/A
      drafter:0  kernels-000001.json, 2 iterations    N/A  10.8 %             2
      idle: neither this lane nor another had its device do anything, in its stages or between them
      unsaid waits: calls that held up the host until the device was done, outside of spans sync.*
    ");
}

/// Bare iterations have no spans: a wait of theirs was taken for one that nobody says.
#[test]
fn waits_of_bare_iterations_are_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let trace = data(TRACE).replacen("\"traceEvents\": [", &format!("\"traceEvents\": [{WAITS}"), 1);
    let run = run(dir.path(), Some(&data("kernels-000001.meta.json")), &trace);
    let capture = only(&run, &limited(Kind::Bare));
    let waits: Vec<_> = capture.waits.iter().map(|w| (w.thread.as_str(), w.calls, w.unsaid)).collect();
    assert_eq!(waits, [("drafter:0", 0, 0), ("pt_autograd_0", 0, 0), ("target:0", 1, 1)]);
}

#[test]
fn every_form_shows_it() {
    let dir = tempfile::tempdir().unwrap();
    let run = run(dir.path(), Some(&data("kernels-000001.meta.json")), &data(TRACE));
    let mut report = Report::of(&timeline(), &Window::default()).unwrap();
    report.captures = captures(&run, &timeline(), &Window::default()).unwrap();
    let text = table(&report, Look::default());
    insta::assert_snapshot!(text[text.find("kernel capture").unwrap()..], @r"
    kernel capture kernels-000001.json of drafter:0, iterations 5 to 6
      where      stage             count  window ms  busy ms  idle ms    busy
      cuda:0     (whole capture)       9    100.000   70.500   29.500  70.5 %
      cuda:1     (whole capture)       1    100.000    2.000   98.000   2.0 %
      drafter:0  drafter.forward       2     40.000   36.000    4.000  90.0 %
      drafter:0  drafter.backward      2     36.000   34.000    2.000  94.4 %
      drafter:0  (between stages)      2      3.000    0.500    2.500  16.7 %
      10 kernels, copies and fills; 5 discarded (2 without a time, 1 negative, 1 end before they begin, 1 longer than a week)
      not seen: operators of lane target:0
    ");
    assert!(markdown(&report).contains("| drafter:0 | drafter.backward | 2 | 36.000 | 34.000 | 2.000 | 94.4 % |"));
    let csv = String::from_utf8(figures_csv(&report).unwrap()).unwrap();
    assert!(csv.contains("1,kernels-000001.json,0,drafter:0,cuda:0,drafter.backward,idle_ns,2000000\n"), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!(json["captures"][0]["lanes"][0]["stages"][0]["idle_ns"], 4_000_000);
}
