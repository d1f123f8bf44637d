//! `dflash ctl` against a training.

use super::running::{Training, ctl};
use super::tiny::Place;
use std::fs;

#[test]
fn a_checkpoint_on_the_way_and_an_end_before_its_time() {
    let place = Place::new();
    let mut training = Training::start(&place);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();

    // What cannot be written is said, and the training goes on.
    let checkpoints = training.run.join("checkpoints");
    fs::write(&checkpoints, "in the way").unwrap();
    let refused = ctl(&place, &["checkpoint"]);
    assert_eq!(refused.status.code(), Some(4));
    assert!(text(refused.stderr).contains("cannot write it: "), "it names the directory and the cause");
    fs::remove_file(&checkpoints).unwrap();
    training.wait_for_a_step();

    let written = ctl(&place, &["checkpoint"]);
    assert_eq!(written.status.code(), Some(0), "{}", text(written.stderr));
    let export = place.path(text(written.stdout).trim());
    assert!(export.starts_with(&checkpoints) && export.ends_with("export"), "{}", export.display());
    assert!(export.join("model.safetensors").is_file() && export.join("config.json").is_file());
    assert_eq!(fs::read_dir(&checkpoints).unwrap().count(), 1, "no part is left");
    training.wait_for_a_step();

    let stopped = ctl(&place, &["stop"]);
    assert_eq!(stopped.status.code(), Some(0), "{}", text(stopped.stderr));
    let run = training.run.clone();
    assert_eq!(training.end(), Some(0), "an end that was asked for is no failure");
    assert!(place.ok(&["runs"]).contains("stopped"));
    assert!(run.join("checkpoints/export/model.safetensors").is_file());
    let csv = fs::read_to_string(run.join("iterations.csv")).unwrap();
    let kinds = csv.lines().filter(|line| line.contains(",checkpoint,total,")).count();
    assert_eq!(kinds, 3, "passes of their own kind, also the one that failed, and the last one");
    let dump = place.ok(&["dump", run.to_str().unwrap()]);
    for mark in ["checkpoint: asked for, by ctl", "could not be written: ", "stop: asked for, by ctl"] {
        assert!(dump.contains(mark), "no {mark:?}");
    }
}
