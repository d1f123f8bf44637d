//! Comparisons: what is planted is found, what is not is not.

use crate::support::{iterations_csv, times};
use dflash_reports::diff::{Call, Comparison, Options, Outcome, Side, compare};
use dflash_reports::text::Look;
use std::path::{Path, PathBuf};

const MS: f64 = 1e6;

/// A run of three stages; `factor` slows drafter.backward down.
fn run(dir: &Path, seed: u64, n: usize, factor: f64) -> PathBuf {
    let stages = [
        ("drafter.wait", times(seed * 10, n, 5.0 * MS, 0.3, 0.3)),
        ("drafter.forward", times(seed * 10 + 1, n, 30.0 * MS, 0.05, 0.6)),
        ("drafter.backward", times(seed * 10 + 2, n, 60.0 * MS * factor, 0.05, 0.6)),
    ];
    iterations_csv(dir, &format!("run{seed}-{n}-{factor}.csv"), &stages)
}

fn compared(a: &[PathBuf], b: &[PathBuf]) -> Comparison {
    compare(&Side::read(a).unwrap(), &Side::read(b).unwrap(), &Options::default()).unwrap()
}

fn call(comparison: &Comparison, stage: &str) -> Call {
    comparison.rows.iter().find(|row| row.key.stage == stage).unwrap().call
}

#[test]
fn a_run_against_itself_is_clean() {
    let dir = tempfile::tempdir().unwrap();
    let a = [run(dir.path(), 1, 1000, 1.0)];
    let comparison = compared(&a, &a);
    assert_eq!(comparison.outcome, Outcome::Fine, "{}", comparison.table(Look::default()));
    assert!(comparison.rows.iter().all(|row| row.ratio == Some(1.0)));
    assert!(comparison.notes.iter().any(|note| note.contains("both sides")));
}

#[test]
fn a_planted_slowdown_is_called_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let comparison = compared(&[run(dir.path(), 1, 500, 1.0)], &[run(dir.path(), 2, 500, 1.2)]);
    assert_eq!(comparison.outcome, Outcome::Regressed);
    assert_eq!(call(&comparison, "drafter.backward"), Call::Regressed);
    assert_ne!(call(&comparison, "drafter.forward"), Call::Regressed);
    assert!(comparison.headline().contains("drafter:0 drafter.backward"), "{}", comparison.headline());
    assert_eq!(comparison.rows[0].key.stage, "total", "the total stands first");
    let back = compared(&[run(dir.path(), 3, 500, 1.2)], &[run(dir.path(), 4, 500, 1.0)]);
    assert_eq!(call(&back, "drafter.backward"), Call::Improved);
    assert_ne!(back.outcome, Outcome::Regressed);
}

#[test]
fn one_run_a_side_is_not_believed_within_run_noise() {
    let dir = tempfile::tempdir().unwrap();
    let comparison = compared(&[run(dir.path(), 1, 3000, 1.0)], &[run(dir.path(), 2, 3000, 1.06)]);
    assert_eq!(call(&comparison, "drafter.backward"), Call::Regressed, "between these two runs");
    assert_eq!(comparison.outcome, Outcome::Inconclusive, "other runs may differ by as much");
    let headline = comparison.headline();
    assert!(
        headline.contains("other runs may differ by as much: ") && headline.contains("drafter.backward"),
        "{headline}"
    );
    assert!(comparison.notes.iter().any(|note| note.starts_with("within-run evidence only")));
    let runs = |first: u64, factor| (first..first + 4).map(|s| run(dir.path(), s, 500, factor)).collect::<Vec<_>>();
    let comparison = compared(&runs(10, 1.0), &runs(20, 1.10));
    assert_eq!(call(&comparison, "drafter.backward"), Call::Regressed, "{}", comparison.table(Look::default()));
}

#[test]
fn identical_programs_are_rarely_called_different() {
    let dir = tempfile::tempdir().unwrap();
    let mut red = 0;
    for seed in 0..60 {
        let (a, b) = (run(dir.path(), 100 + 2 * seed, 300, 1.0), run(dir.path(), 101 + 2 * seed, 300, 1.0));
        red += u32::from(compared(&[a], &[b]).outcome == Outcome::Regressed);
    }
    assert_eq!(red, 0, "of 60 pairs");
}

#[test]
fn changes_below_the_floor_do_not_count() {
    let dir = tempfile::tempdir().unwrap();
    let quick = |seed: u64, mean| {
        let stages = [("drafter.log", times(seed, 500, mean, 0.02, 0.0))];
        iterations_csv(dir.path(), &format!("quick{seed}.csv"), &stages)
    };
    let comparison = compared(&[quick(1, 10_000.0)], &[quick(2, 30_000.0)]);
    assert_eq!(call(&comparison, "drafter.log"), Call::NoChange, "three times as long, but 20 µs");
}

#[test]
fn times_of_nothing_are_compared_like_others() {
    let dir = tempfile::tempdir().unwrap();
    let with = |name: &str, log: f64| {
        let stages = [("drafter.loss", times(1, 300, 20.0 * MS, 0.02, 0.0)), ("drafter.log", vec![log; 300])];
        iterations_csv(dir.path(), name, &stages)
    };
    let none = with("none.csv", 0.0);
    let few = compared(std::slice::from_ref(&none), &[with("few.csv", 40_000.0)]);
    assert_eq!(call(&few, "drafter.log"), Call::NoChange, "{}", few.table(Look::default()));
    assert_eq!(call(&compared(&[none], &[with("many.csv", 4.0 * MS)]), "drafter.log"), Call::Regressed);
}

#[test]
fn a_longer_wait_alone_is_no_regression() {
    let dir = tempfile::tempdir().unwrap();
    let waiting = |seed: u64, wait| {
        let stages = [
            ("drafter.wait", times(seed, 500, wait * MS, 0.05, 0.3)),
            ("drafter.loss", times(seed + 50, 500, 100.0 * MS, 0.01, 0.3)),
        ];
        iterations_csv(dir.path(), &format!("wait{seed}.csv"), &stages)
    };
    let comparison = compared(&[waiting(1, 2.0)], &[waiting(2, 4.0)]);
    assert_eq!(call(&comparison, "drafter.wait"), Call::Regressed);
    assert_eq!(comparison.outcome, Outcome::Fine, "{}", comparison.table(Look::default()));
}

#[test]
fn missing_and_new_stages_are_verdicts() {
    let dir = tempfile::tempdir().unwrap();
    let steady = || times(5, 200, 40.0 * MS, 0.01, 0.0);
    let a = iterations_csv(dir.path(), "a.csv", &[("drafter.loss", steady()), ("drafter.mask", steady())]);
    let b = iterations_csv(dir.path(), "b.csv", &[("drafter.loss", steady()), ("drafter.anchors", steady())]);
    let comparison = compared(&[a], &[b]);
    assert_eq!(call(&comparison, "drafter.mask"), Call::Missing);
    assert_eq!(call(&comparison, "drafter.anchors"), Call::New);
    assert_eq!(comparison.outcome, Outcome::Inconclusive);
}

#[test]
fn few_iterations_are_inconclusive() {
    let dir = tempfile::tempdir().unwrap();
    let comparison = compared(&[run(dir.path(), 1, 8, 1.0)], &[run(dir.path(), 2, 8, 3.0)]);
    assert_eq!(call(&comparison, "drafter.backward"), Call::Inconclusive);
    assert_eq!(comparison.outcome, Outcome::Inconclusive);
}

#[test]
fn a_slow_start_is_cut_and_reported() {
    let dir = tempfile::tempdir().unwrap();
    let mut slow = times(1, 400, 50.0 * MS, 0.02, 0.3);
    slow[..40].iter_mut().for_each(|t| *t *= 4.0);
    let a = [iterations_csv(dir.path(), "a.csv", &[("drafter.loss", slow)])];
    let comparison = compared(&a, &a);
    let cut = &comparison.cuts_a[0];
    assert!((40..=100).contains(&cut.cut), "{cut:?}");
    assert_eq!(cut.of, 400);
}

#[test]
fn as_a_table_and_its_other_forms() {
    let dir = tempfile::tempdir().unwrap();
    let comparison = compared(&[run(dir.path(), 1, 500, 1.0)], &[run(dir.path(), 2, 500, 1.2)]);
    let text = comparison.table(Look::default()).replace(&dir.path().display().to_string(), "DIR");
    insta::assert_snapshot!(text, @r"
    regressed: drafter:0 total, drafter:0 drafter.backward

    drafter:0
      stage               A ms     B ms   change           interval        p95 change (interval)       p        n  effective n  verdict
      total             94.847  107.839  +13.7 %  +12.7 % … +14.7 %  +14.7 % (+12.9 % … +16.6 %)  <0.001  495/500      123/117  regressed; p95 regressed
      drafter.wait       4.890    5.004   +2.3 %    -3.6 % … +8.7 %     +2.9 % (-3.6 % … +9.9 %)   1.000  495/500      305/324  inconclusive (the interval reaches over the threshold)
      drafter.forward   29.873   30.063   +0.6 %    -1.0 % … +2.3 %     +0.8 % (-0.8 % … +2.5 %)   1.000  495/500      143/116  no change
      drafter.backward  60.373   72.644  +20.3 %  +18.7 % … +21.9 %  +21.6 % (+19.4 % … +23.9 %)  <0.001  495/500      105/118  regressed; p95 regressed
      residue            0.001    0.001   +0.0 %    +0.0 % … +0.0 %     +0.0 % (+0.0 % … +0.0 %)   1.000  495/500      495/500  no change

    drafter:0 (limits): mean iteration +13.013 ms = work +12.885 ms, waiting +0.128 ms: drafter.backward +12.729 ms, drafter.forward +0.156 ms, drafter.wait +0.128 ms

    A: DIR/run1-500-1.csv
    B: DIR/run2-500-1.2.csv
    hardware unknown; host unknown; driver unknown; version unknown; commit unknown; config unknown
    threshold 3.0 %, floor 50 µs, alpha 0.05, holm over 10 tests; intervals of ratios at 95 %
    warm-up cut (MSER-5): A drafter:0 5 of 500; B drafter:0 0 of 500
    set apart: not `train`: A 0, B 0 iterations; throttled: A unknown, B unknown
    note: within-run evidence only: one run a side cannot show how much runs differ, so to count (exit 1) a regression must clear 8.2 % (threshold and 5.0 % run noise); give several runs a side, comma-separated
    ");
    let json: serde_json::Value = serde_json::from_str(&comparison.json().unwrap()).unwrap();
    assert_eq!(json["outcome"], "regressed");
    assert_eq!(json["rows"][0]["stage"], "total");
    let csv = String::from_utf8(comparison.csv().unwrap()).unwrap();
    assert!(csv.starts_with("rank,lane,stage,clock,verdict,") && !csv.contains("NaN"), "{csv}");
    assert!(comparison.markdown().contains("| drafter.backward | 60.373 | 72.644 |"), "{}", comparison.markdown());
}
