//! Several runs as one: clocks, ranks, stragglers; and parts of a run in every form.

use crate::recorded::{NOON_NS, Recipe, record};
use dflash_reports::report::{Exported, Report, iterations_csv};
use dflash_reports::timeline::{IterationsWriter, PartOptions, RunDir, read_iterations};
use dflash_reports::window::Selection;

fn of(runs: &[RunDir], selection: &Selection) -> Report {
    Report::of_runs(runs, selection).unwrap().0
}

#[test]
fn two_hosts_stand_on_one_clock_and_the_straggler_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let slow =
        Recipe { name: "b", host: "two", rank: 1, clock_ns: 99_000_000_000, forward_ms: 12, ..Recipe::default() };
    let runs = [record(dir.path(), &Recipe::default()), record(dir.path(), &slow)];
    let report = of(&runs, &Selection::default());
    assert_eq!(report.throughput.wall_ns, Some(19 * 20_000_000 + 29_000_000), "both began at noon");
    assert_eq!(report.places.iter().map(|place| place.shift_ns).collect::<Vec<_>>(), [0, -94_000_000_000]);
    let text = dflash_reports::report::table(&report, dflash_reports::text::Look::default());
    let tail = text.split("\nruns\n").nth(1).unwrap().split("\nqueues\n").next().unwrap();
    insta::assert_snapshot!(tail, @r"
      run                  host  ranks  its own    clock ms
      20261130-120000-run  one   0      0            +0.000
      20261130-120000-b    two   1      1        -94000.000
      clock: what was added to the run's times to place them on the first run's clock

    lanes of one role
      lane       rank  device  own work p50 ms  against the others  slowest in
      target:0   0     cpu              12.000              +0.0 %     0 of 20
      target:0   1     cpu              12.000              +0.0 %     0 of 20
      drafter:0  0     cpu               8.000             -33.3 %     0 of 20
      drafter:0  1     cpu              12.000             +50.0 %    20 of 20  straggler
      own work: an iteration without what it waited (*.wait, *.put, *.reduce, sync.*), over those that all have
      straggler: drafter:0 of rank 1 does 50 % more work than the others, and is the slowest in 100.0 % of the iterations
    ");
    let one = of(&runs, &Selection { ranks: vec![1], ..Selection::default() });
    assert_eq!(one.stages.lanes.iter().map(|lane| lane.rank).collect::<Vec<_>>(), [1, 1]);
    assert_eq!(one.queues.len(), 1);
    assert!(one.peers.is_empty());
}

#[test]
fn ranks_that_occur_twice_get_new_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let runs = [record(dir.path(), &Recipe::default()), record(dir.path(), &Recipe { name: "b", ..Recipe::default() })];
    let (report, merged) = Report::of_runs(&runs, &Selection::default()).unwrap();
    assert_eq!(report.places[1].ranks, [1]);
    assert_eq!(report.places[1].shift_ns, 0, "one host has one clock");
    assert_eq!(
        report.handoffs.pairs.iter().map(|pair| (pair.rank, pair.age.count)).collect::<Vec<_>>(),
        [(0, 20), (1, 20)]
    );
    assert_eq!(report.handoffs.pairs[0].age.p50_ns, 5_000_000);
    let mut csv = Vec::new();
    iterations_csv(&runs, &merged, &mut csv).unwrap();
    let path = dir.path().join("all.csv");
    std::fs::write(&path, csv).unwrap();
    let rows = read_iterations(&path).unwrap();
    assert_eq!(rows.iter().filter(|row| row.rank == 1).count(), rows.len() / 2);
    assert_eq!(report.stages.lanes.len(), 4);
    assert!(report.peers.iter().all(|peer| !peer.straggler), "both are alike");
}

#[test]
fn a_part_of_a_run_is_the_same_part_in_every_file() {
    let dir = tempfile::tempdir().unwrap();
    let runs = [record(dir.path(), &Recipe::default())];
    let export = |selection: &Selection| {
        let (report, merged) = Report::of_runs(&runs, selection).unwrap();
        let mut csv = Vec::new();
        let done = iterations_csv(&runs, &merged, &mut csv).unwrap();
        assert_eq!(csv.iter().filter(|byte| **byte == b'\n').count() as u64, done.rows + 1);
        assert_eq!(done.iterations, merged.iterations());
        (report, done)
    };
    let (_, all) = export(&Selection::default());
    assert_eq!(all, Exported { rows: 160, iterations: 40, torn: 0 });
    for window in
        ["100ms..200ms", "@1796040000.1..@1796040000.2", "2026-11-30T12:00:00.1Z..2026-11-30T13:00:00.2+01:00"]
    {
        let window = Some(window.parse().unwrap());
        let (report, done) = export(&Selection { window, ..Selection::default() });
        let counts: Vec<u64> = report.stages.lanes.iter().map(|lane| lane.iterations).collect();
        assert_eq!((counts.as_slice(), done.iterations), (&[5, 5][..], 10));
        assert_eq!((report.scope.from_ns, report.scope.to_ns), (Some(100_000_000), Some(200_000_000)));
        assert_eq!(report.handoffs.pairs[0].age.count, 5);
    }
    let lanes = vec!["drafter:0".to_owned()];
    let last = Some("50ms".parse().unwrap());
    let (report, done) = export(&Selection { last, lanes, ..Selection::default() });
    assert_eq!((report.stages.lanes.len(), done.iterations), (1, 3));
}

#[test]
fn parts_that_were_put_away_are_exported_too() {
    let dir = tempfile::tempdir().unwrap();
    let run = record(dir.path(), &Recipe::default());
    let rows = read_iterations(&run.iterations_csv()).unwrap();
    std::fs::remove_file(run.iterations_csv()).unwrap();
    let options = PartOptions { part_bytes: Some(2_000), pack: true };
    let mut writer = IterationsWriter::with_options(&run.iterations_csv(), options).unwrap();
    for row in &rows {
        writer.write(row).unwrap();
        writer.flush().unwrap();
    }
    drop(writer);
    let files = std::fs::read_dir(run.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert!(files.filter(|name| name.starts_with("iterations-")).count() > 2);
    let (_, merged) = Report::of_runs(std::slice::from_ref(&run), &Selection::default()).unwrap();
    let mut csv = Vec::new();
    let done = iterations_csv(std::slice::from_ref(&run), &merged, &mut csv).unwrap();
    assert_eq!(done, Exported { rows: 160, iterations: 40, torn: 0 });
    assert_eq!(csv.iter().filter(|byte| **byte == b'\n').count(), 161, "one header");
}

#[test]
fn a_file_that_is_cut_is_exported_as_far_as_it_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let run = record(dir.path(), &Recipe { iterations: 2, ..Recipe::default() });
    let (_, merged) = Report::of_runs(std::slice::from_ref(&run), &Selection::default()).unwrap();
    let whole = std::fs::read(run.iterations_csv()).unwrap();
    for length in 0..whole.len() {
        std::fs::write(run.iterations_csv(), &whole[..length]).unwrap();
        let mut csv = Vec::new();
        match iterations_csv(std::slice::from_ref(&run), &merged, &mut csv) {
            Ok(done) => {
                assert!(done.iterations < 4 && csv.len() < whole.len(), "{length} bytes pass for all");
                assert!(whole.starts_with(&csv), "{length}");
            }
            Err(error) => assert!(error.to_string().contains("iterations.csv"), "{error}"),
        }
    }
    assert_eq!(NOON_NS % 1_000_000_000, 0);
}
