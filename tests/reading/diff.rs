//! diff: exit codes, and what it takes as a side.

use super::support::{dflash, recorded_run};

#[test]
fn a_regression_is_named_and_exits_with_1() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (recorded_run(dir.path(), "a", 1.0), recorded_run(dir.path(), "b", 1.2));
    let (a, b) = (a.path().to_str().unwrap(), b.path().to_str().unwrap());
    let said = dflash(dir.path(), &["diff", a, b]);
    assert_eq!(said.code, Some(1), "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.starts_with("regressed: drafter:0 total, drafter:0 drafter.backward\n"), "{}", said.stdout);
    assert_eq!(dflash(dir.path(), &["diff", b, a]).code, Some(0));
    assert_eq!(dflash(dir.path(), &["diff", a, b, "--threshold", "50%"]).code, Some(0));
}

#[test]
fn a_run_against_itself_is_clean_in_every_form() {
    let dir = tempfile::tempdir().unwrap();
    let run = recorded_run(dir.path(), "a", 1.0);
    let csv = run.iterations_csv();
    for format in ["table", "json", "md", "csv"] {
        let sides = [run.path().to_str().unwrap(), csv.to_str().unwrap()];
        let said = dflash(dir.path(), &["diff", sides[0], sides[1], "--format", format, "--strict"]);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{}", said.stdout);
    }
}

#[test]
fn one_stages_csv_a_side_is_inconclusive() {
    let dir = tempfile::tempdir().unwrap();
    recorded_run(dir.path(), "a", 1.0);
    assert_eq!(dflash(dir.path(), &["report", "--format", "csv", "-o", "a.csv"]).code, Some(0));
    let said = dflash(dir.path(), &["diff", "a.csv", "a.csv"]);
    assert_eq!(said.code, Some(0));
    assert!(said.stderr.starts_with("dflash: warning: no regression found, but inconclusive"), "{}", said.stderr);
    assert_eq!(dflash(dir.path(), &["diff", "a.csv", "a.csv", "--strict"]).code, Some(3));
    let four = "a.csv,a.csv,a.csv,a.csv";
    assert_eq!(dflash(dir.path(), &["diff", four, four, "--strict"]).code, Some(0));
}
