//! `dflash ctl` against a training.

use super::tiny::Place;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};

/// A training that would take days.
struct Training {
    process: Child,
    stderr: BufReader<ChildStderr>,
    run: PathBuf,
}

impl Training {
    fn start(place: &Place) -> Self {
        place.ok(&["prepare", "tiny.toml"]);
        let mut process = Command::new(env!("CARGO_BIN_EXE_dflash"))
            .args(["train", "tiny.toml", "--steps", "1000000"])
            .current_dir(place.path("."))
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        let mut training = Self { process, stderr, run: PathBuf::new() };
        training.wait_for_a_step();
        training.run = fs::read_dir(place.path("runs")).unwrap().next().unwrap().unwrap().path();
        training
    }

    /// Until the next log line that says that steps are being made.
    fn wait_for_a_step(&mut self) {
        let mut line = String::new();
        while !line.contains("step ") {
            line.clear();
            assert!(self.stderr.read_line(&mut line).unwrap() > 0, "it ended by itself");
        }
    }

    /// Reads its log until it ends. Returns its exit code.
    fn end(mut self) -> Option<i32> {
        std::io::copy(&mut self.stderr, &mut std::io::sink()).unwrap();
        self.process.wait().unwrap().code()
    }
}

impl Drop for Training {
    fn drop(&mut self) {
        // It has ended, unless the test failed before.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The log must be read while a command waits for the training, or the training waits for the reader.
fn ctl(place: &Place, training: &mut Training, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dflash"));
    command.arg("ctl").args(arguments).current_dir(place.path(".")).env_remove("DFLASH_RUNS");
    let mut asked = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while asked.try_wait().unwrap().is_none() {
        training.wait_for_a_step();
    }
    asked.wait_with_output().unwrap()
}

#[test]
fn a_checkpoint_on_the_way_and_an_end_before_its_time() {
    let place = Place::new();
    let mut training = Training::start(&place);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();

    // What cannot be written is said, and the training goes on.
    let checkpoints = training.run.join("checkpoints");
    fs::write(&checkpoints, "in the way").unwrap();
    let refused = ctl(&place, &mut training, &["checkpoint"]);
    assert_eq!(refused.status.code(), Some(4));
    assert!(text(refused.stderr).contains("cannot write it: "), "it names the directory and the cause");
    fs::remove_file(&checkpoints).unwrap();
    training.wait_for_a_step();

    let written = ctl(&place, &mut training, &["checkpoint"]);
    assert_eq!(written.status.code(), Some(0), "{}", text(written.stderr));
    let export = place.path(text(written.stdout).trim());
    assert!(export.starts_with(&checkpoints) && export.ends_with("export"), "{}", export.display());
    assert!(export.join("model.safetensors").is_file() && export.join("config.json").is_file());
    assert_eq!(fs::read_dir(&checkpoints).unwrap().count(), 1, "no part is left");
    training.wait_for_a_step();

    let stopped = place.dflash(&["ctl", "stop"]);
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
