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
fn a_run_without_its_rows_names_the_file_that_is_missing() {
    let dir = tempfile::tempdir().unwrap();
    let run = recorded_run(dir.path(), "a", 1.0);
    std::fs::remove_file(run.iterations_csv()).unwrap();
    let said = dflash(dir.path(), &["diff", run.path().to_str().unwrap(), run.path().to_str().unwrap()]);
    assert_eq!(said.code, Some(2), "{}", said.stdout);
    assert!(said.stderr.contains("iterations.csv: cannot read it"), "{}", said.stderr);
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

#[test]
fn a_regression_within_run_noise_is_named_but_does_not_exit_with_1() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (recorded_run(dir.path(), "a", 1.0), recorded_run(dir.path(), "b", 1.06));
    let (a, b) = (a.path().to_str().unwrap(), b.path().to_str().unwrap());
    let said = dflash(dir.path(), &["diff", a, b, "--strict"]);
    assert_eq!(said.code, Some(3), "{}{}", said.stdout, said.stderr);
    assert!(said.stdout.contains("other runs may differ by as much: "), "{}", said.stdout);
    assert_eq!(dflash(dir.path(), &["diff", a, b]).code, Some(0));
    assert_eq!(dflash(dir.path(), &["diff", a, b, "--run-noise", "0"]).code, Some(1));
    assert_eq!(dflash(dir.path(), &["diff", a, b, "--run-noise", "0", "--floor", "50ms", "--strict"]).code, Some(0));
    assert_eq!(dflash(dir.path(), &["diff", a, b, "--run-noise", "0", "--correction", "bh"]).code, Some(1));
}

#[test]
fn a_stretch_of_time_is_asked_for_as_everywhere() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (recorded_run(dir.path(), "a", 1.0), recorded_run(dir.path(), "b", 1.2));
    let (a, b) = (a.path().to_str().unwrap(), b.path().to_str().unwrap());
    let all = dflash(dir.path(), &["diff", a, b]);
    for stretch in [["--last", "1d"], ["--window", "0s.."], ["--window", "@-1000.."]] {
        let said = dflash(dir.path(), &[&["diff", a, b][..], &stretch].concat());
        assert_eq!((said.code, &said.stdout), (Some(1), &all.stdout), "{stretch:?}: {}", said.stderr);
    }
    let nothing = dflash(dir.path(), &["diff", a, b, "--window", "1d.."]);
    assert_eq!(nothing.code, Some(2), "{}", nothing.stdout);
    assert!(nothing.stderr.contains("nothing of the lanes, rank and time"), "{}", nothing.stderr);
    assert_eq!(dflash(dir.path(), &["diff", a, b, "--last", "1s", "--window", "0s.."]).code, Some(2));
}

#[test]
fn a_renamed_stage_and_runs_by_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (recorded_run(dir.path(), "a", 1.0), recorded_run(dir.path(), "b", 1.0));
    let text = std::fs::read_to_string(b.iterations_csv()).unwrap();
    std::fs::write(b.iterations_csv(), text.replace("drafter.backward", "drafter.back")).unwrap();
    let (a, b) = (a.name(), b.name());
    let said = dflash(dir.path(), &["diff", &a, &b, "--strict"]);
    assert_eq!(said.code, Some(3), "{}", said.stderr);
    assert!(said.stdout.contains("--map 'drafter.backward=drafter.back'"), "{}", said.stdout);
    let map = "drafter.backward=drafter.back";
    assert_eq!(dflash(dir.path(), &["diff", &a, &b, "--strict", "--map", map]).code, Some(0));
    std::fs::write(dir.path().join("names"), format!("# old=new\n\n{map}\n")).unwrap();
    assert_eq!(dflash(dir.path(), &["diff", &a, &b, "--strict", "--map-file", "names"]).code, Some(0));
    let said = dflash(dir.path(), &["diff", &a, &b, "--map", "nothing"]);
    assert_eq!((said.code, said.stderr.trim()), (Some(2), "dflash: --map nothing: write OLD=NEW"));
}

#[test]
fn other_hardware_fails_only_when_strict() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = (recorded_run(dir.path(), "a", 1.0), recorded_run(dir.path(), "b", 1.0));
    for (run, gpu) in [(&a, "NVIDIA H100"), (&b, "NVIDIA H200")] {
        let mut manifest = run.manifest().unwrap();
        manifest.gpus = vec![gpu.into()];
        run.write_manifest(&manifest).unwrap();
    }
    let sides = [a.path().to_str().unwrap(), b.path().to_str().unwrap()];
    let said = dflash(dir.path(), &["diff", sides[0], sides[1]]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(said.stderr.contains("the sides differ in more than the program: hardware"), "{}", said.stderr);
    assert!(said.stdout.contains("differs: hardware: A 1 × NVIDIA H100, B 1 × NVIDIA H200"), "{}", said.stdout);
    assert_eq!(dflash(dir.path(), &["diff", sides[0], sides[1], "--strict"]).code, Some(3));
}

#[test]
fn calibration_of_one_run() {
    let dir = tempfile::tempdir().unwrap();
    let run = recorded_run(dir.path(), "a", 1.0);
    let path = run.path().to_str().unwrap();
    for format in ["table", "json", "md", "csv"] {
        let said = dflash(dir.path(), &["diff", "--calibrate", path, "--splits", "5", "--format", format]);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{}", said.stdout);
        let expected = if format == "table" { "false-alarm rate 0.0 % (0 of 5 splits" } else { "regressed" };
        assert!(said.stdout.contains(expected), "{}", said.stdout);
    }
    assert_eq!(dflash(dir.path(), &["diff", "--calibrate", path, "--splits", "0"]).code, Some(2));
    assert_eq!(dflash(dir.path(), &["diff", "--calibrate", "a", "a", "b"]).code, Some(2));
    assert_eq!(dflash(dir.path(), &["diff"]).code, Some(2));
}
