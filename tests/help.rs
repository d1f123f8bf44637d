//! `--help` is a tested artefact.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::process::Command;

/// As wide as where nobody says how wide the terminal is, and without its colours.
fn help(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dflash"));
    command.args(arguments).arg("--help").env_remove("COLUMNS").env_remove("CLICOLOR_FORCE");
    let output = command.output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_commands_and_their_options() {
    insta::assert_snapshot!("dflash", help(&[]));
    for command in ["prepare", "train", "eval", "export", "doctor"] {
        insta::assert_snapshot!(command, help(&[command]));
    }
}

#[test]
fn the_commands_that_read() {
    for command in ["runs", "top", "report", "flamegraph", "trace", "diff", "dump", "ctl", "completions"] {
        insta::assert_snapshot!(command, help(&[command]));
    }
}

#[test]
fn what_may_be_asked_of_a_run() {
    for what in ["status", "level", "mark", "cpu", "stacks", "kernels", "checkpoint", "stop"] {
        insta::assert_snapshot!(format!("ctl_{what}"), help(&["ctl", what]));
    }
}
