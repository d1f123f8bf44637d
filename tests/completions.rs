//! Completions and man pages come from the definitions that the command is parsed by.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

fn completions(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dflash"));
    command.current_dir(directory).arg("completions").args(arguments).output().unwrap()
}

#[test]
fn every_shell_hears_of_every_command() {
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let output = completions(dir.path(), &[shell]);
        assert!(output.status.success());
        let script = String::from_utf8(output.stdout).unwrap();
        for word in ["flamegraph", "trace", "--window", "--chrome", "checkpoint"] {
            assert!(script.contains(word) || script.contains(word.trim_start_matches("--")), "{word} for {shell}");
        }
    }
    assert_eq!(completions(dir.path(), &["csh"]).status.code(), Some(2));
}

#[test]
fn bash_can_read_its_own() {
    let dir = tempfile::tempdir().unwrap();
    assert!(completions(dir.path(), &["bash", "-o", "dflash.bash"]).status.success());
    match Command::new("bash").current_dir(dir.path()).args(["-n", "dflash.bash"]).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => drop(writeln!(std::io::stderr(), "skipped: bash: {error}")),
    }
}

#[test]
fn a_page_for_every_command() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(completions(dir.path(), &["man"]).status.code(), Some(2), "where to?");
    assert!(completions(dir.path(), &["man", "-o", "man/"]).status.success());
    let page = |name: &str| std::fs::read_to_string(dir.path().join("man").join(name)).unwrap();
    assert!(page("dflash.1").contains("dflash\\-flamegraph(1)") || page("dflash.1").contains("dflash\\-flamegraph"));
    for (name, words) in
        [("dflash-flamegraph.1", "speedscope"), ("dflash-ctl-level.1", "level"), ("dflash-trace.1", "chrome")]
    {
        assert!(page(name).contains(words), "{name}");
    }
    assert_eq!(
        completions(dir.path(), &["man", "-o", "man/"]).status.code(),
        Some(2),
        "nothing is overwritten unasked"
    );
    assert!(completions(dir.path(), &["man", "-o", "man/", "--force"]).status.success());
}
