//! The run directory and its manifest.

use std::fs;
use std::path::Path;

use dflash_timeline::{Error, Manifest, RunDir, State};

fn manifest(started_unix_ns: i64) -> Manifest {
    let mut manifest = Manifest::default();
    manifest.started_unix_ns = started_unix_ns;
    manifest
}

#[test]
fn a_run_has_a_directory_of_its_own() {
    let parent = tempfile::tempdir().unwrap();
    let create =
        || RunDir::create(&parent.path().join("runs"), "tiny demo/1", manifest(951_827_696_000_000_000)).unwrap();
    let (first, second, third) = (create(), create(), create());
    assert_eq!(first.name(), "20000229-123456-tiny-demo-1");
    assert_eq!(second.name(), "20000229-123456-tiny-demo-1-2");
    assert_eq!(third.name(), "20000229-123456-tiny-demo-1-3");
    assert!(first.timeline_dir().is_dir());
    let manifest = first.manifest().unwrap();
    assert_eq!((manifest.name.as_str(), manifest.pid), ("tiny demo/1", std::process::id()));
    assert!(!manifest.host.is_empty());
}

#[test]
fn the_manifest_is_replaced_and_keeps_what_it_holds() {
    let parent = tempfile::tempdir().unwrap();
    let run = RunDir::create(parent.path(), "a", Manifest::default()).unwrap();
    let mut manifest = run.manifest().unwrap();
    manifest.state = State::Finished;
    manifest.results.insert("tau".into(), 1.91.into());
    manifest.command = vec!["dflash".into(), "train".into()];
    run.write_manifest(&manifest).unwrap();
    assert_eq!(RunDir::open(run.path()).unwrap().manifest().unwrap(), manifest);
    let names: Vec<_> = fs::read_dir(run.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
    assert_eq!(names.len(), 2, "nothing is left beside it: {names:?}");
}

#[test]
fn what_is_no_run_says_so() {
    let parent = tempfile::tempdir().unwrap();
    let error = RunDir::open(parent.path()).unwrap_err().to_string();
    assert!(error.contains("is not a run directory: run.json is missing; give a directory under runs/"), "{error}");
    assert!(matches!(RunDir::open(Path::new("/nowhere/at/all")), Err(Error::NotARun { .. })));
    let run = RunDir::create(parent.path(), "a", Manifest::default()).unwrap();
    assert!(matches!(RunDir::open(run.path().join("run.json")), Err(Error::NotARun { .. })));
    fs::write(run.path().join("run.json"), "{\n  \"schema\": 1,\n  \"pid\": \"x\"\n}").unwrap();
    let error = run.manifest().unwrap_err().to_string();
    assert!(error.contains("run.json:3:") && error.contains("not a run manifest"), "{error}");
    fs::write(run.path().join("run.json"), "{\"schema\": 99}").unwrap();
    assert!(run.manifest().unwrap_err().to_string().contains("update dflash"));
    fs::write(run.path().join("run.json"), "{\"schema\": 1, \"from_the_future\": [1]}").unwrap();
    assert_eq!(run.manifest().unwrap().attempt, 1);
}

#[test]
fn the_newest_run_is_chosen_live_ones_first() {
    let parent = tempfile::tempdir().unwrap();
    assert!(matches!(RunDir::newest(parent.path()), Err(Error::NoRuns { .. })));
    assert!(matches!(RunDir::newest(&parent.path().join("runs")), Err(Error::NoRuns { .. })));
    let finished = |name: &str, second: i64| {
        let mut manifest = manifest(second * 1_000_000_000);
        manifest.state = State::Finished;
        RunDir::create(parent.path(), name, manifest).unwrap()
    };
    let (old, new) = (finished("old", 1), finished("new", 9));
    assert_eq!(RunDir::newest(parent.path()).unwrap(), new);
    let live = RunDir::create(parent.path(), "live", manifest(5_000_000_000)).unwrap();
    fs::create_dir(parent.path().join("no-run")).unwrap();
    fs::write(parent.path().join("a file"), "").unwrap();
    assert_eq!(RunDir::newest(parent.path()).unwrap(), live);
    let (runs, damaged) = RunDir::list_all(parent.path()).unwrap();
    assert_eq!(runs, [new, live, old]);
    assert!(damaged.len() == 1 && damaged[0].to_string().contains("no-run"), "{damaged:?}");
}

#[test]
fn a_run_whose_process_is_gone_has_died() {
    let parent = tempfile::tempdir().unwrap();
    let run = RunDir::create(parent.path(), "a", Manifest::default()).unwrap();
    let state_with = |change: fn(&mut Manifest)| {
        let mut manifest = run.manifest().unwrap();
        change(&mut manifest);
        run.write_manifest(&manifest).unwrap();
        run.state().unwrap()
    };
    assert_eq!(run.state().unwrap(), State::Running);
    assert_eq!(state_with(|m| m.pid_start = m.pid_start.map(|ticks| ticks + 1)), State::Died, "another process");
    assert_eq!(state_with(|m| (m.pid, m.pid_start) = (0x3fff_ffff, None)), State::Died);
    assert_eq!(state_with(|m| m.host = "elsewhere".into()), State::Running, "another machine's cannot be asked");
    assert_eq!(state_with(|m| m.state = State::Failed), State::Failed);
}
