//! scripts/tau-curve with a dflash and a python that only take notes.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Notes each training; one of them fails, another one does not end by itself.
const DFLASH: &str = r#"#!/bin/sh
dir=$(dirname "$0")
case "$1 $*" in
    train*) echo "$* gpus=$CUDA_VISIBLE_DEVICES. threads=$OMP_NUM_THREADS" >>"$dir/calls" ;;
esac
case "$1 $*" in
    train*ours-7-1*) [ -e "$dir/repaired" ] || exit 4; echo run ;;
    train*ours-99-*) exec sleep 300 ;;
    train*) echo run ;;
    eval*) echo '{"trained": {"tau": 1.5, "pooled": 1.4, "prompts": 2, "tokens": 9, "equal": 2, "near_tie": 0, "wrong": 0}}' ;;
esac
"#;

/// A reference that is trained at once; the picture is the real one's.
const PYTHON: &str = r#"#!/bin/sh
case "$1" in
    *reference_train.py) for last; do :; done; mkdir -p "$last"; touch "$last/config.json"; echo "$*" >>"$(dirname "$0")/calls" ;;
    *) exec python3 "$@" ;;
esac
"#;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        for (name, text) in [("dflash", DFLASH), ("python", PYTHON)] {
            let path = place.0.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        place
    }

    fn curve(&self, arguments: &[&str]) -> Output {
        let dir = self.0.path();
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../scripts/tau-curve"))
            .args(["--cpu", "--threads", "1", "--seeds", "0 1"])
            .args(arguments)
            .arg("-o")
            .arg(dir.join("out"))
            .env("DFLASH", dir.join("dflash"))
            .env("PYTHON", dir.join("python"))
            .output()
            .unwrap()
    }

    /// What was trained since the last time that this was asked.
    fn calls(&self) -> Vec<String> {
        let path = self.0.path().join("calls");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let _ = std::fs::remove_file(&path);
        text.lines().map(str::to_owned).collect()
    }

    fn rows(&self) -> usize {
        std::fs::read_to_string(self.0.path().join("out/tau.csv")).unwrap().lines().count() - 1
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_curve_begins_with_the_longest_goes_on_after_a_failure_and_makes_nothing_twice() {
    let place = Place::new();
    let asked = ["--steps", "3 7", "--reference", "7", "--jobs", "1"];
    let first = place.curve(&asked);
    assert!(!first.status.success() && said(&first).contains("failed: ours-7-1 (see"), "{}", said(&first));
    let calls = place.calls();
    let steps: Vec<bool> = calls.iter().map(|call| call.contains("--steps 7 ")).collect();
    assert_eq!(steps, [true, true, true, true, false, false], "{calls:?}");
    let ours: Vec<_> = calls.iter().filter(|call| call.starts_with("train")).collect();
    assert!(ours.iter().all(|call| call.contains("--set pipeline.threads=1 gpus=. threads=1")), "{ours:?}");
    assert_eq!((ours.len(), place.rows()), (4, 5));

    std::fs::write(place.0.path().join("repaired"), "").unwrap();
    let again = place.curve(&asked);
    assert!(again.status.success(), "{}", said(&again));
    let calls = place.calls();
    assert!(calls.len() == 1 && calls[0].contains("--name ours-7-1 "), "only what failed: {calls:?}");
    assert_eq!(place.rows(), 6);
}

#[test]
fn a_curve_that_is_out_of_time_stops_its_trainings_and_shows_what_there_is() {
    let place = Place::new();
    let nothing_yet = place.curve(&["--steps", "99", "--seconds", "1"]);
    assert!(nothing_yet.status.success(), "{}", said(&nothing_yet));
    place.calls();
    assert!(place.curve(&["--steps", "3"]).status.success());
    assert_eq!(place.calls().len(), 2);
    let stopped = place.curve(&["--steps", "99 3", "--jobs", "4", "--seconds", "2"]);
    assert!(stopped.status.success(), "{}", said(&stopped));
    assert!(said(&stopped).contains("2 s are over: the rest is for another call"), "{}", said(&stopped));
    // On a busy machine none of them may have begun.
    assert!(place.calls().iter().all(|call| call.contains("--steps 99 ")));
    assert_eq!(place.rows(), 2);
}
