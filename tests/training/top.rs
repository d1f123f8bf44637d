//! `dflash train --top`: the view in the training's own process, in a real terminal.

use super::tiny::Place;
use crate::reading::terminal::{Terminal, process_in, terminal};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// A shell in a place that is prepared, with its settings; `None` without tmux.
fn shell(place: &Place) -> Option<(Terminal, String, String)> {
    place.ok(&["prepare", "tiny.toml"]);
    let terminal = terminal(&place.path("."), 120, 40)?;
    let (settings, modes) = (terminal.settings(), terminal.modes());
    Some((terminal, settings, modes))
}

fn train(terminal: &Terminal, steps: u32) {
    let program = env!("CARGO_BIN_EXE_dflash");
    terminal.line("clear");
    terminal.line(&format!("'{program}' train tiny.toml --top --steps {steps}; echo code=$?"));
}

fn newest_run(place: &Place) -> PathBuf {
    let runs = fs::read_dir(place.path("runs")).unwrap().map(|entry| entry.unwrap().path());
    runs.max_by_key(|run| fs::metadata(run.join("run.json")).and_then(|data| data.modified()).ok()).unwrap()
}

#[test]
fn leaving_the_view_does_not_end_the_training_and_its_log_waits_among_the_events() {
    let place = Place::new();
    let Some((terminal, settings, modes)) = shell(&place) else { return };
    train(&terminal, 1_000_000);
    terminal.wait("alive");
    assert_eq!(terminal.modes(), "1 0 0");
    terminal.type_in("8");
    // A line that had been written over the screen would not stand behind its kind.
    let log = |screen: &str| screen.lines().any(|line| line.contains(" log ") && line.contains("drafter:0 iteration"));
    terminal.wait_for("the training's log", log);
    terminal.type_in("q");
    terminal.wait("the view is closed and the training goes on");
    terminal.wait_for("the bar, and the log above it", |screen| {
        screen.contains("/1000000") && screen.contains("drafter:0 iteration")
    });
    assert_eq!(terminal.modes(), modes);
    assert!(place.ok(&["runs"]).contains("running"));
    // Without the view, Ctrl-Z and Ctrl-C mean what they mean to any training.
    terminal.press(&["C-z"]);
    terminal.wait("Stopped");
    terminal.line("clear");
    terminal.line("fg");
    terminal.wait("/1000000");
    terminal.press(&["C-c"]);
    terminal.wait_for("the prompt", |screen| screen.trim_end().lines().last().is_some_and(|line| line.trim() == "$"));
    terminal.line("echo ended=$?");
    terminal.wait("ended=130");
    assert_eq!((terminal.settings(), terminal.modes()), (settings, modes));
}

#[test]
fn the_terminal_is_as_before_however_the_training_ends() {
    let place = Place::new();
    let Some((terminal, settings, modes)) = shell(&place) else { return };
    let as_before =
        |how: &str| assert_eq!((terminal.settings(), terminal.modes()), (settings.clone(), modes.clone()), "{how}");

    train(&terminal, 1_000_000);
    terminal.wait("alive");
    terminal.press(&["C-c"]);
    let screen = terminal.wait("code=130");
    assert!(screen.contains("the training ends after the step that runs"), "{screen}");
    assert!(newest_run(&place).join("checkpoints/export/model.safetensors").is_file());
    as_before("Ctrl-C");

    train(&terminal, 1_000_000);
    terminal.wait("alive");
    let id = process_in(&place.path(".")).to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    terminal.wait("code=143");
    as_before("SIGTERM");

    train(&terminal, 1_000_000);
    terminal.wait("alive");
    let id = process_in(&place.path(".")).to_string();
    assert!(Command::new("kill").args(["-HUP", &id]).status().unwrap().success());
    terminal.wait("code=129");
    assert!(newest_run(&place).join("checkpoints/export/model.safetensors").is_file());
    as_before("SIGHUP");

    train(&terminal, 40);
    let screen = terminal.wait("code=0");
    assert!(screen.contains("40 steps; drafter in"), "{screen}");
    as_before("its end");

    // The drafter cannot be written: the training fails behind the view.
    train(&terminal, 1_000_000);
    terminal.wait("alive");
    fs::write(newest_run(&place).join("checkpoints"), "in the way").unwrap();
    terminal.press(&["C-c"]);
    let screen = terminal.wait("code=4");
    assert!(screen.contains("dflash: ") && screen.contains("checkpoints"), "{screen}");
    as_before("an error");
}

/// A connection that breaks takes the terminal away, and with it whoever does not listen. The training ends as after Ctrl-C.
#[test]
fn a_terminal_that_is_gone_ends_the_training_with_what_it_has_learnt() {
    let place = Place::new();
    let Some((terminal, ..)) = shell(&place) else { return };
    // Beside it in its job, a shell that outlives the terminal, to say how the training ended.
    let program = env!("CARGO_BIN_EXE_dflash");
    let script = format!("trap : HUP; \"{program}\" train tiny.toml --top --steps 1000000; echo $? > code");
    terminal.line(&format!("sh -c '{script}'"));
    terminal.wait("alive");
    terminal.hang_up();
    let run = newest_run(&place);
    let patience = Instant::now() + Duration::from_secs(180);
    while place.ok(&["runs"]).contains("running") && Instant::now() < patience {
        thread::sleep(Duration::from_millis(100));
    }
    let manifest: Value = serde_json::from_str(&fs::read_to_string(run.join("run.json")).unwrap()).unwrap();
    assert_eq!(manifest["state"], "stopped", "{}", manifest["outcome"]);
    // The file is there before the line is in it.
    let code = || fs::read_to_string(place.path("code")).unwrap_or_default();
    while !code().ends_with('\n') && Instant::now() < patience {
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(code(), "129\n");
    assert!(run.join("checkpoints/export/model.safetensors").is_file());
}

#[test]
fn without_a_terminal_it_trains_all_the_same() {
    let place = Place::new();
    place.ok(&["prepare", "tiny.toml"]);
    let output = place.dflash(&["train", "tiny.toml", "--top"]);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(stderr.contains("--top needs a terminal") && stderr.contains("step 5/12"), "{stderr}");
}
