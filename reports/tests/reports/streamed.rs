//! A report that goes through the stream says what one says that has all of it in memory.

use crate::busy::Busy;
use dflash_reports::flamegraph::{By, Graph, Options, Time};
use dflash_reports::history::History;
use dflash_reports::report::{Charts, Report, html, table};
use dflash_reports::sources::read_part;
use dflash_reports::text::Look;
use dflash_reports::timeline::{RunDir, SegmentWriter, read};
use dflash_reports::window::Selection;
use std::path::Path;

/// Flame graphs of both ways.
fn same_graphs(run: &RunDir, selection: &Selection) {
    let timeline = read(run).unwrap();
    let window = selection.resolve(&timeline).unwrap();
    for time in [Time::Wall, Time::Device] {
        let folded = |graph: &Graph| graph.folded();
        let expected = Graph::of(&timeline, &window, time, By::Lane).map(|graph| folded(&graph));
        let found = Graph::of_run(run, selection, time, By::Lane).map(|(graph, _)| folded(&graph));
        assert_eq!(found.map_err(|e| e.to_string()), expected.map_err(|e| e.to_string()), "{selection:?} {time:?}");
    }
    assert_eq!(read_part(run, selection).unwrap().1, window);
}

/// The JSON of both ways, without what only a run has, or only a whole timeline.
fn both(run: &RunDir, selection: &Selection, whole: bool) -> [serde_json::Value; 2] {
    let timeline = read(run).unwrap();
    let window = selection.resolve(&timeline).unwrap();
    let in_memory = Report::of(&timeline, &window).unwrap();
    let (streamed, merged) = Report::of_runs(std::slice::from_ref(run), selection).unwrap();
    assert_eq!(merged.window, window, "{selection:?}");
    let here = timeline
        .iterations
        .iter()
        .filter(|i| window.has_time(i.begin_ns + i.duration_ns as i64) && window.has_lane(&timeline, i.lane));
    assert_eq!(merged.iterations(), here.count() as u64);
    let expected = History::of(&timeline, &window, &streamed.stages, merged.begin_ns);
    let charts = Charts::of(&streamed, &merged, &[]);
    assert!(charts.history.lanes == expected.lanes, "{selection:?}");
    for (a, b) in charts.history.counters.iter().zip(&expected.counters) {
        assert_eq!((&a.counter, a.pieces.len()), (&b.counter, b.pieces.len()));
        assert!(a.pieces.iter().zip(&b.pieces).all(|(a, b)| (a.mean - b.mean).abs() <= 1e-9 * b.mean.abs()));
    }
    assert!(html(&streamed, &charts).contains("</html>"));
    [in_memory, streamed].map(|report| {
        let mut json = serde_json::to_value(report).unwrap();
        for field in ["run", "captures"] {
            json[field] = serde_json::Value::Null;
        }
        if !whole {
            // Of a stretch of time only that is read: what is lost elsewhere, and elsewhere's stacks, are not seen.
            json["losses"] = serde_json::Value::Null;
            json["stages"]["strays"] = serde_json::Value::Null;
            json["cpu_samples"] = serde_json::Value::Null;
        }
        json
    })
}

fn equal([in_memory, streamed]: [serde_json::Value; 2], what: &str) {
    for (field, expected) in in_memory.as_object().unwrap() {
        assert_eq!(&streamed[field], expected, "{what}: {field}");
    }
}

#[test]
fn of_several_segments_ranks_and_lanes() {
    let dir = tempfile::tempdir().unwrap();
    let (iterations, bytes) = (800, u64::MAX);
    let busy = Busy { ranks: 2, pairs: 2, segment_bytes: 70_000, iterations, bytes, restart_after: 150 };
    let (run, _) = busy.write(dir.path());
    assert!(std::fs::read_dir(run.timeline_dir()).unwrap().count() > 5);
    equal(both(&run, &Selection::default(), true), "all");
    let all = Report::of_runs(std::slice::from_ref(&run), &Selection::default()).unwrap().0;
    let goodput = all.goodput.unwrap();
    assert_eq!(goodput.restarts, 2, "one a rank");
    assert!(goodput.lost_ns > 0 && all.handoffs.pairs.len() == 4 && all.handoffs.never_put == 0);
    assert!(all.peers.iter().any(|peer| peer.straggler) && all.queues[0].full_share.is_some());
    let lanes = Selection { lanes: vec!["drafter:1".into()], ranks: vec![1], ..Selection::default() };
    equal(both(&run, &lanes, true), "a lane");
    for window in ["1s..2s", "13s..", "..5500ms", "@1796040014..@1796040015.5", "7100ms..7141ms"] {
        let window = Some(window.parse().unwrap());
        equal(both(&run, &Selection { window, ..Selection::default() }, false), &format!("{window:?}"));
        same_graphs(&run, &Selection { window, ..Selection::default() });
    }
    for last in ["1ms", "900ms", "1h"] {
        let last = Some(last.parse().unwrap());
        equal(both(&run, &Selection { last, ..lanes.clone() }, false), &format!("{last:?}"));
    }
}

#[test]
fn of_the_recordings() {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data/recordings");
    for name in ["h200", "h200-device", "h200-pipeline-8b"] {
        let run = RunDir::open(recordings.join(name)).unwrap();
        equal(both(&run, &Selection::default(), true), name);
        let last = Some("2s".parse().unwrap());
        equal(both(&run, &Selection { last, ..Selection::default() }, false), name);
    }
}

/// Percentiles of many iterations come from buckets, all else is as it was.
#[test]
fn of_many_iterations() {
    let dir = tempfile::tempdir().unwrap();
    let (iterations, bytes) = (80_000, u64::MAX);
    let busy = Busy { ranks: 1, pairs: 1, segment_bytes: 8 << 20, iterations, bytes, restart_after: 0 };
    let (run, _) = busy.write(dir.path());
    // Of 3,200 s a window reads itself and half a minute before.
    let last = Some("10s".parse().unwrap());
    let (part, _) = read_part(&run, &Selection { last, ..Selection::default() }).unwrap();
    assert!((250 * 10..2_000 * 20).contains(&part.spans.len()), "{}", part.spans.len());
    let streamed = Report::of_runs(std::slice::from_ref(&run), &Selection::default()).unwrap().0;
    let mut exact: Vec<u64> = Vec::new();
    let timeline = read(&run).unwrap();
    let backward = timeline.names.iter().position(|name| name == "drafter.backward").unwrap() as u32;
    let train = |number: u64| number > 2 && number % 50 != 49 && number % 16 != 7;
    exact.extend(
        timeline.spans.iter().filter(|s| s.name.0 == backward && train(s.iteration.unwrap())).map(|s| s.duration_ns),
    );
    exact.sort_unstable();
    let lane = streamed.stages.lanes.iter().find(|lane| lane.lane == "drafter:0").unwrap();
    let found = &lane.stage("drafter.backward").unwrap().host;
    assert!(exact.len() > 65_536);
    assert_eq!((found.count, found.total_ns), (exact.len() as u64, exact.iter().sum()));
    assert_eq!(found.max_ns, exact[exact.len() - 1]);
    for (percent, ns) in [(50, found.p50_ns), (90, found.p90_ns), (95, found.p95_ns), (99, found.p99_ns)] {
        let exact = dflash_reports::stats::percentile(&exact, percent).unwrap();
        assert!(ns.abs_diff(exact) as f64 <= exact as f64 * 0.003, "p{percent}: {ns} for {exact}");
    }
}

/// By hand, and optimised, on its own: `cargo test --release -p dflash-reports --test reports -- --ignored --nocapture
/// a_gigabyte`. Writes a timeline below the temporary directory (DFLASH_BIG_MB: its megabytes), and deletes it.
#[test]
#[ignore = "writes a gigabyte; prints what docs/measurements.md may hold"]
fn a_gigabyte() {
    let megabytes: u64 = std::env::var("DFLASH_BIG_MB").map_or(1000, |text| text.parse().unwrap());
    let dir = tempfile::tempdir().unwrap();
    let busy = Busy {
        ranks: 1,
        pairs: 4,
        segment_bytes: 64 << 20,
        iterations: u64::MAX,
        bytes: megabytes * 1_000_000,
        restart_after: 100_000,
    };
    let (run, bytes) = busy.write(dir.path());
    let runs = std::slice::from_ref(&run);
    let timed = |what: &str, mut work: Box<dyn FnMut() + '_>| {
        let (began, cpu) = (std::time::Instant::now(), cpu_s());
        work();
        let (wall, cpu, most) = (began.elapsed().as_secs_f64(), cpu_s() - cpu, most_resident_mb());
        println!("{what}: {wall:.2} s, {cpu:.2} s of CPU time, at most {most} MB resident so far");
    };
    println!("{:.0} MB, at most {} MB resident while it was written", bytes as f64 / 1e6, most_resident_mb());
    timed(
        "report",
        Box::new(|| {
            let (report, _) = Report::of_runs(runs, &Selection::default()).unwrap();
            println!("{} records", report.losses.totals.written);
            assert!(table(&report, Look::default()).contains("drafter.backward"));
            assert_eq!(report.stages.lanes.len(), 8);
        }),
    );
    timed(
        "report of the last minute",
        Box::new(|| {
            let last = Some("60s".parse().unwrap());
            let (report, _) = Report::of_runs(runs, &Selection { last, ..Selection::default() }).unwrap();
            assert!(report.stages.lanes[0].iterations > 1_000);
        }),
    );
    for (what, time) in [("flame graph of wall time", Time::Wall), ("flame graph of device time", Time::Device)] {
        timed(
            what,
            Box::new(|| {
                let (graph, _) = Graph::of_run(&run, &Selection::default(), time, By::Lane).unwrap();
                assert!(graph.svg(&Options::default()).unwrap().len() > 10_000);
            }),
        );
    }
    timed(
        "report as a page",
        Box::new(|| {
            let (report, merged) = Report::of_runs(runs, &Selection::default()).unwrap();
            assert!(html(&report, &Charts::of(&report, &merged, &[])).len() < 4_000_000);
        }),
    );
    assert!(most_resident_mb() < 1000);
}

/// By hand, and optimised, on its own, as `a_gigabyte`: a run whose every span has another name.
#[test]
#[ignore = "seconds when it is optimised; prints what docs/measurements.md may hold"]
fn a_million_names_of_a_run() {
    use dflash_reports::timeline::record::{Iteration, Kind, Lane, Span, Totals};
    let dir = tempfile::tempdir().unwrap();
    let run = RunDir::create(dir.path(), "names", dflash_reports::timeline::Manifest::default()).unwrap();
    let mut stream = SegmentWriter::create(&run, 0, 64 << 20).unwrap();
    let lane = stream.lane(&Lane { name: "drafter:0".into(), device: "cpu".into(), rank: 0 });
    let (index, depth, device, duration_ns) = (None, 0, None, 90);
    for at in 0..1_000_000_i64 {
        let (name, begin_ns, iteration) = (stream.name(&format!("drafter.stage{at}")), at * 100, at as u64 / 1000);
        let span = Span { name, lane, iteration: Some(iteration), index, depth, begin_ns, duration_ns, device };
        stream.span(&span).unwrap();
        if at % 1000 == 999 {
            let (number, begin_ns, kind) = (iteration, (at - 999) * 100, Kind::Train);
            let (duration_ns, cpu_ns, tokens) = (100_000, None, None);
            stream.iteration(&Iteration { lane, number, kind, begin_ns, duration_ns, cpu_ns, tokens }).unwrap();
        }
    }
    stream.end(&[], Totals::default()).unwrap();
    println!("at most {} MB resident while it was written", most_resident_mb());
    let whole = Selection::default();
    let (graph, _) = Graph::of_run(&run, &whole, Time::Wall, By::Lane).unwrap();
    println!("flame graph: at most {} MB resident", most_resident_mb());
    let mut folded = Vec::new();
    graph.write_folded(&mut folded).unwrap();
    println!("as folded stacks: at most {} MB resident", most_resident_mb());
    drop((graph, folded));
    let (report, merged) = Report::of_runs(std::slice::from_ref(&run), &whole).unwrap();
    println!("report: at most {} MB resident", most_resident_mb());
    assert_eq!(report.stages.lanes[0].rows.len(), 1_000_001);
    assert!(html(&report, &Charts::of(&report, &merged, &[])).len() < 1_000_000);
    println!("as a page: at most {} MB resident", most_resident_mb());
    assert!(most_resident_mb() < 1000);
}

/// The most that this process had in memory.
pub fn most_resident_mb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1000
}

/// CPU time of this process, all threads.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let ticks: Vec<u64> =
        stat.rsplit(')').next().unwrap().split_whitespace().skip(11).take(2).map(|t| t.parse().unwrap()).collect();
    ticks.iter().sum::<u64>() as f64 / 100.0
}
