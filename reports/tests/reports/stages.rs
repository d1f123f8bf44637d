//! The stage table against a brute-force oracle, and its rules one by one.

use crate::support::{Builder, MS, small_run};
use dflash_reports::stages::{Window, stage_table};
use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::{Kind, LaneId};
use proptest::prelude::*;

/// Sorted per-iteration sums of a stage, by asking every span about every iteration.
fn oracle(timeline: &Timeline, lane: u32, stage: &str) -> Vec<u64> {
    let mut sums = Vec::new();
    for i in timeline.iterations.iter().filter(|i| i.lane == LaneId(lane) && i.kind == Kind::Train) {
        let spans = timeline.spans.iter().filter(|s| {
            s.lane == i.lane && s.iteration == Some(i.number) && s.depth == 0 && timeline.name(s.name) == stage
        });
        let durations: Vec<u64> = spans.map(|s| s.duration_ns).collect();
        if !durations.is_empty() {
            sums.push(durations.iter().sum());
        }
    }
    sums.sort_unstable();
    sums
}

/// Smallest value that at least `percent` % do not exceed, by counting.
fn oracle_percentile(values: &[u64], percent: usize) -> u64 {
    let reaches = |v: u64| values.iter().filter(|x| **x <= v).count() * 100 >= percent * values.len();
    values.iter().copied().find(|v| reaches(*v)).unwrap()
}

proptest! {
    #[test]
    fn agrees_with_brute_force(
        lanes in prop::collection::vec(
            prop::collection::vec((0_u8..5, 0_u64..1000, prop::collection::vec((0_usize..4, 0_u64..5000), 0..8)), 1..12),
            1..4,
        )
    ) {
        const STAGES: [&str; 4] = ["a.read", "b.forward", "c.wait", "d.put"];
        let mut b = Builder::new();
        for (number, lane) in lanes.iter().enumerate() {
            b = b.lane(&format!("lane:{number}"));
            for (kind, residue, spans) in lane {
                let kind = if *kind == 0 { Kind::Eval } else { Kind::Train };
                b = b.iteration(kind, *residue, |b| spans.iter().for_each(|(s, ns)| { b.span(STAGES[*s], *ns); }));
            }
        }
        let table = stage_table(&b.timeline, &Window::default());
        prop_assert_eq!(table.strays, 0);
        for (lane_table, lane) in table.lanes.iter().zip(0_u32..) {
            let sum: u64 = lane_table.rows.iter().map(|row| row.host.total_ns).sum();
            prop_assert_eq!(sum, lane_table.total.total_ns, "stages and residue add up");
            for stage in STAGES {
                let expected = oracle(&b.timeline, lane, stage);
                let Some(row) = lane_table.stage(stage) else {
                    prop_assert!(expected.is_empty());
                    continue;
                };
                // A stage that only other kinds ran is not listed at all, so an empty oracle has no row.
                prop_assert_eq!(row.host.count as usize, expected.len());
                prop_assert_eq!(row.host.total_ns, expected.iter().sum::<u64>());
                prop_assert_eq!(row.host.p50_ns, oracle_percentile(&expected, 50));
                prop_assert_eq!(row.host.p95_ns, oracle_percentile(&expected, 95));
                prop_assert_eq!(Some(row.host.max_ns), expected.last().copied());
            }
        }
    }
}

#[test]
fn spans_of_a_stage_are_summed_and_nested_ones_stand_below() {
    let table = stage_table(&small_run(), &Window::default());
    let drafter = &table.lanes[1];
    let names: Vec<(u8, &str, u64)> = drafter.rows.iter().map(|r| (r.depth, r.stage.as_str(), r.spans)).collect();
    let expected = [
        (0, "drafter.wait", 20),
        (0, "drafter.forward", 20),
        (1, "drafter.layer", 40),
        (0, "drafter.loss", 40),
        (0, "residue", 0),
    ];
    assert_eq!(names, expected);
    let loss = drafter.stage("drafter.loss").unwrap();
    assert_eq!((loss.host.count, loss.host.p50_ns, loss.host.max_ns), (20, 3 * MS, 3 * MS));
    assert_eq!(drafter.rows[2].parent.as_deref(), Some("drafter.forward"));
}

#[test]
fn other_kinds_are_set_apart_and_counted() {
    let table = stage_table(&small_run(), &Window::default());
    let drafter = &table.lanes[1];
    assert_eq!(drafter.iterations, 20);
    assert_eq!(drafter.set_apart.iter().map(|s| (s.kind, s.iterations)).collect::<Vec<_>>(), [(Kind::Warmup, 1)]);
    assert!(drafter.total.max_ns < 900 * MS);
    assert_eq!(drafter.cpu_share, Some(0.5));
    assert_eq!(drafter.tokens, Some(2000));
}

#[test]
fn device_time_is_unknown_unless_it_was_measured() {
    let b = Builder::new().lane("drafter:0").iteration(Kind::Train, 0, |b| {
        b.device_span("drafter.forward", MS, 5 * MS).span("drafter.log", MS);
    });
    let table = stage_table(&b.timeline, &Window::default());
    let lane = &table.lanes[0];
    assert_eq!(lane.stage("drafter.forward").unwrap().device.map(|d| d.p50_ns), Some(5 * MS));
    assert_eq!(lane.stage("drafter.log").unwrap().device, None);
    assert_eq!(lane.total_device.map(|d| d.total_ns), Some(5 * MS));
    assert!(stage_table(&small_run(), &Window::default()).lanes.iter().all(|l| l.total_device.is_none()));
}

#[test]
fn spans_without_their_iteration_are_counted_not_guessed() {
    let mut timeline = small_run();
    timeline.iterations.remove(5);
    let table = stage_table(&timeline, &Window::default());
    assert_eq!(table.strays, 2, "target.forward and target.put of the lost iteration");
    assert_eq!(table.lanes[0].iterations, 19);
    let parent =
        timeline.spans.iter().position(|s| timeline.name(s.name) == "drafter.forward" && s.iteration > Some(0));
    timeline.spans.remove(parent.unwrap());
    assert_eq!(stage_table(&timeline, &Window::default()).strays, 4, "and two layers of a lost parent");
}

#[test]
fn a_window_takes_the_iterations_that_end_in_it() {
    let timeline = small_run();
    let end = timeline.iterations[9].begin_ns + timeline.iterations[9].duration_ns as i64;
    let lanes = vec!["target:0".to_owned()];
    let table = stage_table(&timeline, &Window { to_ns: Some(end), lanes: lanes.clone(), ..Window::default() });
    assert_eq!(table.lanes.iter().map(|l| l.iterations).collect::<Vec<_>>(), [9]);
    let table = stage_table(&timeline, &Window { from_ns: Some(end), lanes, ..Window::default() });
    assert_eq!(table.lanes[0].iterations, 11);
}

#[test]
fn stages_longer_than_their_iteration_are_reported() {
    let mut timeline = small_run();
    timeline.iterations[0].duration_ns = 6 * MS - 1;
    let table = stage_table(&timeline, &Window::default());
    assert_eq!((table.lanes[0].overfull, table.strays), (1, 1), "target.put begins after the iteration's end");
}
