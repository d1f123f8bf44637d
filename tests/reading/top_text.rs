//! What `dflash top` prints where there is no terminal: text and JSON, of a run, of several, and of none.

use super::support::{dflash, recorded_run};
use super::writing::Writer;
use dflash_reports::timeline::{Manifest, RunDir, State};
use serde_json::Value;
use std::path::Path;

#[test]
fn without_a_run_it_shows_the_machines_gpus_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let said = dflash(dir.path(), &["top"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.contains("no run: the GPUs of this machine"), "{}", said.stdout);
    let named = dflash(dir.path(), &["top", "nowhere"]);
    assert_eq!((named.code, named.stdout.as_str()), (Some(2), ""), "a run that was named must be there");
}

/// Three recordings: one of an H200, a small one, and one with queues and GPUs whose end was torn off.
#[test]
fn json_is_the_reports_over_the_same_window() {
    let dir = tempfile::tempdir().unwrap();
    let h200 = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings/h200");
    let small = recorded_run(dir.path(), "small", 1.0);
    let mut failed = Manifest::default();
    // Of one that lives it would be said how long it has been silent.
    failed.state = State::Failed;
    let torn = RunDir::create(&dir.path().join("runs"), "torn", failed).unwrap();
    let mut writer = Writer::create(&torn, 4);
    (0..300).for_each(|number| writer.tick(number));
    drop(writer);
    let mut compared = 0;
    for run in [h200.as_path(), small.path(), torn.path()] {
        let run = run.to_str().unwrap();
        for (of_top, of_report) in [
            (&[][..], &[][..]),
            (&["--window", "2s..5s"], &["--window", "2s..5s"]),
            (&["--window", "3s.."], &["--window", "3s.."]),
            (&["--window", "10s"], &["--last", "10s"]),
        ] {
            let json = |arguments: &[&[&str]]| -> Value {
                let said = dflash(dir.path(), &arguments.concat());
                assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.stderr);
                serde_json::from_str(&said.stdout).unwrap()
            };
            let top = json(&[&["top", run, "--json"], of_top]);
            let report = json(&[&["report", run, "--format", "json"], of_report]);
            assert_eq!(top, report, "{run} {of_top:?}");
            compared += usize::from(!top["stages"]["lanes"].as_array().unwrap().is_empty());
        }
    }
    assert!(compared >= 9, "most of the windows hold something to compare");
    assert_same_on_the_screen(dir.path(), h200.to_str().unwrap());
}

/// The screen's table over a stretch of time has the report's counts.
fn assert_same_on_the_screen(directory: &Path, run: &str) {
    let window = ["--window", "3s..5s"];
    let report = dflash(directory, &[&["report", run, "--format", "json"], &window[..]].concat());
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    let screen = dflash(directory, &[&["top", run, "--view", "stages", "--size", "200x60"], &window[..]].concat());
    assert_eq!(screen.code, Some(0), "{}", screen.stderr);
    let mut compared = 0;
    let rows = report["stages"]["lanes"].as_array().unwrap().iter().flat_map(|lane| lane["rows"].as_array().unwrap());
    // Each lane has a residue; every other stage is of one lane.
    for row in rows.filter(|row| row["stage"] != "residue") {
        let (stage, count) = (row["stage"].as_str().unwrap(), row["host"]["count"].to_string());
        let mut lines = screen.stdout.lines().map(|line| line.split_whitespace().skip(1));
        let shown = lines.find_map(|mut words| (words.next() == Some(stage)).then(|| words.next()).flatten());
        assert_eq!(shown.map(|shown| shown.replace(',', "")), Some(count), "{stage} in\n{}", screen.stdout);
        compared += 1;
    }
    assert!(compared > 5, "{compared} stages were compared");
}

#[test]
fn several_runs_stand_side_by_side() {
    let dir = tempfile::tempdir().unwrap();
    let (one, other) = (recorded_run(dir.path(), "one", 1.0), recorded_run(dir.path(), "other", 1.5));
    let said = dflash(dir.path(), &["top", &one.name(), &other.name()]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stdout.contains("drafter:0 ") && said.stdout.contains("drafter:0 r1"), "{}", said.stdout);
    let json = |command: &[&str]| -> Value {
        serde_json::from_str(&dflash(dir.path(), &[command, &[&one.name(), &other.name()]].concat()).stdout).unwrap()
    };
    assert_eq!(json(&["top", "--json"]), json(&["report", "--format", "json"]));
    let twice = dflash(dir.path(), &["top", &one.name(), &one.name()]);
    assert_eq!(twice.code, Some(2), "{}", twice.stdout);
}

#[test]
fn a_baseline_is_found_beside_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let (fast, slow) = (recorded_run(dir.path(), "fast", 1.0), recorded_run(dir.path(), "slow", 1.5));
    let said = dflash(dir.path(), &["top", &slow.name(), "--baseline", &fast.name(), "--view", "stages"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let backward = said.stdout.lines().find(|line| line.contains("drafter.backward")).unwrap();
    assert!(backward.contains("+49.9 %") || backward.contains("+50.0 %"), "{backward}");
}
