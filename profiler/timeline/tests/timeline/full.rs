//! run.json, and what other ranks note, on a disk that has no room left: a small one of its own, in a process of its own that may mount it.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use dflash_timeline::{Manifest, RunDir, State};

/// Tells this test's process, started anew, where the small disk is.
const CHILD: &str = "DFLASH_TEST_FULL_DISK";

/// Runs one of the tests below on a disk of 128 kB; `None` where nobody may mount one.
fn on_a_small_disk(test: &str) -> Option<Output> {
    let place = tempfile::tempdir().unwrap();
    let mount = |then: &str| {
        let script = format!("mount -t tmpfs -o size=128k none \"$0\" && {then}");
        let own = std::env::current_exe().unwrap();
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", &script]).arg(place.path()).arg(own).arg(test);
        command.env(CHILD, place.path()).output()
    };
    if !mount("true").is_ok_and(|tried| tried.status.success()) {
        return None;
    }
    Some(mount("exec \"$1\" \"$2\" --exact --ignored --nocapture").unwrap())
}

/// Fills the disk to its last byte.
fn fill(directory: &Path) {
    let mut file = File::create(directory.join("filler")).unwrap();
    for bytes in [4096, 1] {
        while file.write_all(&vec![0; bytes]).is_ok() {}
    }
    assert!(fs::write(directory.join("more"), [0; 4096]).is_err(), "the disk is full");
}

#[test]
#[ignore = "started by the test below on a disk of its own"]
fn child_of_the_full_disk() {
    let Some(place) = std::env::var_os(CHILD) else { return };
    let mut manifest = Manifest::default();
    manifest.config = serde_json::json!({ "long": "x".repeat(9_000) });
    let run = RunDir::create(Path::new(&place), "a", manifest).unwrap();
    let of_rank = run.rank_trouble(3, 1);
    fill(Path::new(&place));
    for round in 0..20 {
        // Each longer than the one before: the spare file has room for some.
        let trouble = format!("round {round}: {}", "no room ".repeat(10 * round));
        run.amend_manifest(|manifest| manifest.trouble = Some(trouble.clone())).unwrap();
        assert_eq!(RunDir::open(run.path()).unwrap().manifest().unwrap().trouble.as_ref(), Some(&trouble));
        of_rank.note(&trouble).unwrap();
        assert_eq!(run.trouble_of_ranks(1, None), Some(format!("rank 3: {trouble}")));
        // Whatever was given back meanwhile is taken by somebody else.
        fill(Path::new(&place));
    }
    run.amend_manifest(|manifest| manifest.state = State::Stopped).unwrap();
    assert_eq!(run.state().unwrap(), State::Stopped);
    of_rank.close();
    let too_long = "y".repeat(64 << 10);
    run.amend_manifest(|manifest| manifest.outcome = Some(too_long)).unwrap_err();
    assert_eq!((run.state().unwrap(), run.manifest().unwrap().outcome), (State::Stopped, None), "the old one is whole");
    let mut names: Vec<_> = fs::read_dir(run.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["run.json", "timeline"]);
    println!("all is well");
}

#[test]
fn a_full_disk_still_takes_what_the_run_says_of_itself() {
    let Some(output) = on_a_small_disk("full::child_of_the_full_disk") else {
        println!("skipped: no one here may mount a file system of his own");
        return;
    };
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("all is well"), "{text}");
}
