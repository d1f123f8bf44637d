//! Two hosts in one run: whatever the second one's clock shows, both are on one axis in every reader.

use crate::recorded::{Recipe, record, record_rank};
use crate::trace_reader::read as read_trace;
use dflash_reports::report::Report;
use dflash_reports::timeline::{RunDir, Tail};
use dflash_reports::trace::{Options, Source, perfetto};
use dflash_reports::window::Selection;
use std::path::Path;

const MS: i64 = 1_000_000;

/// Two ranks that did the same from noon on; the second one's clock lags behind the first one's.
fn two_hosts(parent: &Path, lag_ns: i64) -> RunDir {
    let first = Recipe::default();
    let run = record(parent, &first);
    let second = Recipe { rank: 1, clock_ns: first.clock_ns - lag_ns, ..first };
    record_rank(&run, &second, Some(lag_ns));
    run
}

/// What depends on the clock: of a selection, iterations by lane, extent; the trace's slices.
fn seen(run: &RunDir, selection: &Selection) -> (Vec<u64>, Option<u64>, [Option<i64>; 2], String) {
    let (report, _) = Report::of_runs(std::slice::from_ref(run), selection).unwrap();
    let counts = report.stages.lanes.iter().map(|lane| lane.iterations).collect();
    let (source, window) = Source::open(run, selection).unwrap();
    let mut trace = Vec::new();
    perfetto(&source, &Options { window, ..Options::default() }, &mut trace).unwrap();
    let slices = format!("{:?}", read_trace(&trace).slices);
    (counts, report.throughput.wall_ns, [report.scope.from_ns, report.scope.to_ns], slices)
}

#[test]
fn ranks_of_two_hosts_are_on_one_clock_in_report_window_and_trace() {
    let dirs = [0, 50 * MS, -50 * MS, 3 * 86_400_000 * MS].map(|lag_ns| (tempfile::tempdir().unwrap(), lag_ns));
    let runs: Vec<RunDir> = dirs.iter().map(|(dir, lag_ns)| two_hosts(dir.path(), *lag_ns)).collect();
    let window = |window: &str| Selection { window: Some(window.parse().unwrap()), ..Selection::default() };
    let last = Selection { last: Some("50ms".parse().unwrap()), ..Selection::default() };
    for (selection, each) in [(Selection::default(), 20), (window("100ms..200ms"), 5), (last, 3)] {
        let expected = seen(&runs[0], &selection);
        assert_eq!(expected.0.len(), 4, "both lanes of both ranks");
        assert!(expected.0.iter().all(|count| count.abs_diff(each) <= 1), "{:?}", expected.0);
        for (run, (_, lag_ns)) in runs.iter().zip(&dirs).skip(1) {
            assert_eq!(seen(run, &selection), expected, "{lag_ns} {selection:?}");
        }
    }
    // `top` follows: it keeps what is new by any rank's clock, so that a rank of another clock would be gone.
    for run in &runs {
        let mut tail = Tail::open(run).unwrap().with_window(100 * MS as u64);
        tail.poll().unwrap();
        assert_eq!(tail.timeline().extent(), {
            let mut same = Tail::open(&runs[0]).unwrap().with_window(100 * MS as u64);
            same.poll().unwrap();
            same.timeline().extent()
        });
    }
}
