//! Bad input: one clear line on stderr, exit code 2, nothing written.

use super::support::{dflash, recorded_run};

#[test]
fn a_directory_that_is_no_run() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("plain")).unwrap();
    for command in [&["report", "plain"][..], &["flamegraph", "plain"], &["dump", "plain"], &["diff", "plain", "plain"]]
    {
        let said = dflash(dir.path(), command);
        assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""), "{command:?}");
        assert!(
            said.stderr.starts_with("dflash: plain is not a run directory: run.json is missing"),
            "{}",
            said.stderr
        );
        assert_eq!(said.stderr.lines().count(), 1);
    }
}

#[test]
fn no_run_at_all() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["report", "flamegraph", "dump", "runs"] {
        let said = dflash(dir.path(), &[command]);
        assert_eq!(said.code, Some(2), "{command}");
        assert!(said.stderr.contains("dflash train"), "{}", said.stderr);
    }
}

#[test]
fn a_csv_with_a_missing_column_or_a_bad_value() {
    let dir = tempfile::tempdir().unwrap();
    let run = recorded_run(dir.path(), "a", 1.0);
    let good = std::fs::read_to_string(run.iterations_csv()).unwrap();
    let broken = |text: String| {
        std::fs::write(dir.path().join("b.csv"), text).unwrap();
        let said = dflash(dir.path(), &["diff", "b.csv", run.path().to_str().unwrap()]);
        assert_eq!((said.code, said.stdout.as_str()), (Some(2), ""));
        said.stderr
    };
    assert!(broken(good.replacen("host_ns", "host", 1)).contains("b.csv:1: column `host_ns` is missing"));
    let bad = broken(good.replacen(",100000,", ",NaN,", 1));
    assert!(bad.contains("b.csv:5: column `host_ns`: `NaN` is not"), "{bad}");
    assert!(broken(String::new()).contains("b.csv: the file is empty"));
}

#[test]
fn numbers_that_make_no_sense() {
    let dir = tempfile::tempdir().unwrap();
    for threshold in ["nan", "-1%", "inf", "3"] {
        let said = dflash(dir.path(), &["diff", "a", "b", "--threshold", threshold]);
        assert_eq!(said.code, Some(2), "{threshold}");
        assert!(said.stderr.contains("--threshold"), "{}", said.stderr);
    }
    for (option, value) in [("--run-noise", "-5%"), ("--floor", "50"), ("--floor", "-1us"), ("--alpha", "nan")] {
        let said = dflash(dir.path(), &["diff", "a", "b", option, value]);
        assert_eq!(said.code, Some(2), "{option} {value}");
        assert!(said.stderr.contains(option), "{}", said.stderr);
    }
}

#[test]
fn a_run_without_a_finished_iteration() {
    let dir = tempfile::tempdir().unwrap();
    let run = recorded_run(dir.path(), "a", 1.0);
    for segment in std::fs::read_dir(run.timeline_dir()).unwrap() {
        std::fs::remove_file(segment.unwrap().path()).unwrap();
    }
    let said = dflash(dir.path(), &["flamegraph", "-o", "x.svg"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("no finished iteration was recorded"), "{}", said.stderr);
    assert!(!dir.path().join("x.svg").exists());
    let said = dflash(dir.path(), &["report"]);
    assert!(said.stdout.contains("no finished iteration was recorded yet"), "{}", said.stdout);
}

#[test]
fn an_output_that_cannot_be_written() {
    let dir = tempfile::tempdir().unwrap();
    recorded_run(dir.path(), "a", 1.0);
    std::fs::write(dir.path().join("mine.txt"), "mine").unwrap();
    let said = dflash(dir.path(), &["report", "-o", "mine.txt"]);
    assert_eq!(said.code, Some(2));
    assert_eq!(std::fs::read_to_string(dir.path().join("mine.txt")).unwrap(), "mine");
    let said = dflash(dir.path(), &["report", "-o", "nowhere/x.txt"]);
    assert!(said.stderr.contains("the directory nowhere does not exist; create it first"), "{}", said.stderr);
    let said = dflash(dir.path(), &["report", "-o", "mine.txt/x.txt"]);
    assert!(said.stderr.contains("mine.txt is no directory; name a file elsewhere"), "{}", said.stderr);
}
