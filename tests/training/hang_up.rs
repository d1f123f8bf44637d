//! A connection that breaks: the training behind it ends with what it has learnt, unless it was told to stay.

use super::running::Training;
use super::tiny::Place;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

fn manifest(run: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(run.join("run.json")).unwrap()).unwrap()
}

fn signal(run: &Path, name: &str) {
    let pid = manifest(run)["pid"].to_string();
    assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
}

/// The same command, started by another one.
fn started_by(place: &Place, starter: &[&str]) -> impl FnOnce(&mut Command) {
    move |command| {
        let mut outer = Command::new(starter[0]);
        outer.args(&starter[1..]).arg(command.get_program()).args(command.get_args()).current_dir(place.path("."));
        *command = outer;
    }
}

#[test]
fn a_training_whose_terminal_is_gone_ends_with_129_and_keeps_what_it_has_learnt() {
    let place = Place::new();
    // Whoever runs the tests may have told them to stay.
    let training = Training::with(&place, started_by(&place, &["env", "--default-signal=HUP"]));
    let run = training.run.clone();
    // The kernel tells of it, and then the shell.
    signal(&run, "-HUP");
    signal(&run, "-HUP");
    assert_eq!(training.end(), Some(129));
    assert_eq!(manifest(&run)["state"], "stopped");
    assert!(run.join("checkpoints/export/model.safetensors").is_file());
}

#[test]
fn under_nohup_it_goes_on() {
    let place = Place::new();
    let mut training = Training::with(&place, started_by(&place, &["sh", "-c", "trap '' HUP; exec \"$0\" \"$@\""]));
    signal(&training.run, "-HUP");
    training.wait_for_a_step();
    training.wait_for_a_step();
    let run = training.run.clone();
    assert_eq!(manifest(&run)["state"], "running");
    signal(&run, "-TERM");
    assert_eq!(training.end(), Some(143));
}

#[test]
fn a_second_signal_ends_it_at_once_and_nothing_is_written_any_more() {
    let place = Place::new();
    let training = Training::start(&place);
    let run = training.run.clone();
    // While it is stopped both arrive, so that no step and no checkpoint can come between them.
    for name in ["-STOP", "-INT", "-TERM", "-CONT"] {
        signal(&run, name);
    }
    let code = training.end();
    assert!(matches!(code, Some(130 | 143)), "{code:?}");
    // Nothing was closed or written on the way out: that is what a first signal does.
    assert_eq!(manifest(&run)["state"], "running");
    assert!(!run.join("checkpoints/export").exists());
}
