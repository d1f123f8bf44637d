//! `dflash` links no libtorch and becomes `dflash-train` for what needs it, without anybody noticing.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const DFLASH: &str = env!("CARGO_BIN_EXE_dflash");

/// A directory on the file system of the programs, so that they can be linked into it: a copy that is started while another
/// test makes a process would be "busy".
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// A `dflash` that lies alone, as on a laptop to which nothing else was copied.
fn alone(directory: &Path) -> PathBuf {
    let program = directory.join("dflash");
    fs::hard_link(DFLASH, &program).unwrap();
    program
}

fn output(program: &Path, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = Command::new(program).args(arguments).output().unwrap();
    (status.code(), String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap())
}

/// What the system loads for a program, as ldd finds it: names and paths. Not the addresses behind them: they are
/// random, and one that holds `c10` failed a run.
fn libraries(program: &Path) -> String {
    let mut listing = Command::new(program);
    let listed = String::from_utf8(listing.env("LD_TRACE_LOADED_OBJECTS", "1").output().unwrap().stdout).unwrap();
    listed
        .lines()
        .map(|line| format!("{}\n", line.rsplit_once(" (0x").map_or(line, |(names, _)| names).trim()))
        .collect()
}

/// libtorch alone takes 119 MB before `main` begins: whatever links it cannot look at a run in 60 MB.
#[test]
fn what_reads_a_run_loads_no_libtorch() {
    let loaded = libraries(Path::new(DFLASH));
    assert!(loaded.contains("libc.so") && !loaded.contains("(0x"), "that is no list: {loaded}");
    for library in ["libtorch", "libc10", "libgomp", "libcuda"] {
        assert!(!loaded.contains(library), "src/ must name nothing that links {library}:\n{loaded}");
    }
}

#[test]
#[cfg(feature = "train")]
fn what_trains_loads_libtorch() {
    let loaded = libraries(Path::new(env!("CARGO_BIN_EXE_dflash-train")));
    assert!(loaded.contains("libtorch_cpu.so => /") && loaded.contains("libc10.so => /"), "{loaded}");
}

#[test]
fn without_the_trainer_a_command_that_computes_says_where_it_is_looked_for() {
    let directory = directory();
    let program = alone(directory.path());
    for arguments in
        [&["train", "x.toml"][..], &["prepare", "x.toml"], &["eval"], &["export", "x", "-o", "y"], &["doctor"]]
    {
        let (code, stdout, stderr) = output(&program, arguments);
        assert_eq!((code, &*stdout), (Some(2), ""), "{arguments:?}: {stderr}");
        let place = directory.path().join("dflash-train").display().to_string();
        assert!(stderr.contains(&place) && stderr.contains("cargo build --release"), "{arguments:?}: {stderr}");
    }
}

/// Without the trainer, so that it cannot be what answers.
#[test]
fn help_and_mistakes_need_no_trainer() {
    let directory = directory();
    let program = alone(directory.path());
    let (code, stdout, stderr) = output(&program, &["train", "--help"]);
    assert!(code == Some(0) && stdout.contains("--time-limit"), "{stderr}");
    for (arguments, part) in [
        (&["train"][..], "<CONFIG>"),
        (&["train", "x.toml", "--time-limit", "soon"], "`soon` is no time"),
        (&["eval", "--temperature", "warm"], "`warm` is no temperature"),
        (&["doctor", "model", "data"], "--mask-token-id"),
    ] {
        let (code, _, stderr) = output(&program, arguments);
        assert!(
            code == Some(2) && stderr.contains(part) && !stderr.contains("dflash-train"),
            "{arguments:?}: {stderr}"
        );
    }
}

#[test]
fn a_trainer_that_cannot_be_started_is_named_with_the_cause() {
    let directory = directory();
    let program = alone(directory.path());
    let trainer = directory.path().join("dflash-train");
    fs::write(&trainer, "not to be run").unwrap();
    let (code, _, stderr) = output(&program, &["doctor"]);
    assert_eq!(code, Some(2), "{stderr}");
    assert!(stderr.contains(&format!("cannot start {}", trainer.display())) && stderr.contains("denied"), "{stderr}");
}

/// Written by the process that is then started: see `directory`.
const A_SCRIPT_IN_ITS_PLACE: &str = r#"
cat >dflash-train <<'END'
#!/bin/sh
echo "$$"
echo "$DFLASH_BUILT_FROM"
printf '%s\n' "$@"
exit 7
END
chmod +x dflash-train
echo "$$"
exec ./dflash train x.toml --name 'a b'
"#;

#[test]
fn it_becomes_the_trainer_in_the_same_process_and_passes_every_word_on() {
    let directory = directory();
    alone(directory.path());
    let said = Command::new("sh").args(["-c", A_SCRIPT_IN_ITS_PLACE]).current_dir(directory.path()).output().unwrap();
    let (stdout, stderr) = (String::from_utf8(said.stdout).unwrap(), String::from_utf8(said.stderr).unwrap());
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(said.status.code(), Some(7), "{stdout}{stderr}");
    assert_eq!(lines[0], lines[1], "another process");
    assert!(lines[2].starts_with(concat!(env!("CARGO_PKG_VERSION"), ", commit ")), "{stdout}");
    assert_eq!(lines[3..], ["train", "x.toml", "--name", "a b"]);
}

/// A link is followed to where both programs lie, and run.json has the command as it was typed.
#[test]
#[cfg(feature = "train")]
fn through_a_link_the_trainer_is_found_and_the_command_is_told_as_it_was_typed() {
    let directory = directory();
    let link = directory.path().join("df");
    std::os::unix::fs::symlink(DFLASH, &link).unwrap();
    let config = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/sim/one_and_one.toml").display().to_string();
    let runs = directory.path().join("runs").display().to_string();
    let arguments = ["train", &config, "--steps", "2", "--runs", &runs];
    let (code, stdout, stderr) = output(&link, &arguments);
    assert_eq!(code, Some(0), "{stderr}");
    let manifest = fs::read(Path::new(stdout.trim()).join("run.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let typed: Vec<String> =
        [&[link.to_str().unwrap()], &arguments[..]].concat().into_iter().map(str::to_owned).collect();
    assert_eq!(manifest["command"], serde_json::json!(typed));
}

/// Started by hand the trainer is the whole command: its help, and what reads a run.
#[test]
#[cfg(feature = "train")]
fn the_trainer_alone_does_everything() {
    let trainer = Path::new(env!("CARGO_BIN_EXE_dflash-train"));
    let directory = directory();
    let (code, stdout, stderr) = output(trainer, &["top", "--once", "--runs", directory.path().to_str().unwrap()]);
    assert!(code == Some(0) && stdout.contains("GPU"), "{stdout}{stderr}");
    let help = |program| output(program, &["--help"]).1;
    assert_eq!(help(trainer).replace("dflash-train", "dflash"), help(Path::new(DFLASH)));
}

/// `cargo build --no-default-features` makes a new `dflash` and leaves the trainer beside it as it was.
#[test]
#[cfg(feature = "train")]
fn a_trainer_of_another_build_says_so() {
    let stderr = |program: &str, front: &str| {
        let mut command = Command::new(program);
        let output = command.args(["train", "nothing.toml"]).env("DFLASH_BUILT_FROM", front).output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    };
    let said = stderr(env!("CARGO_BIN_EXE_dflash-train"), "0.0.1, commit 12");
    assert!(said.contains("dflash was built from 0.0.1, commit 12, and dflash-train beside it from "), "{said}");
    // Of these two each is told by the other.
    let said = stderr(DFLASH, "0.0.1, commit 12");
    assert!(said.contains("nothing.toml") && !said.contains("was built from"), "{said}");
}

/// A name that is no text cannot be noted in run.json: this was a panic, and exit code 4.
#[test]
#[cfg(feature = "train")]
fn an_argument_that_is_no_text_is_a_mistake_of_the_user() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let directory = directory();
    let name = OsStr::from_bytes(b"odd-\xff.toml");
    let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/sim/one_and_one.toml");
    if let Err(error) = fs::copy(shipped, directory.path().join(name)) {
        println!("skipped: this file system takes no such name: {error}");
        return;
    }
    for program in [DFLASH, env!("CARGO_BIN_EXE_dflash-train")] {
        let mut command = Command::new(program);
        let output = command.arg("train").arg(name).current_dir(directory.path()).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]), "{stderr}");
        assert!(stderr.starts_with("dflash: the argument `odd-") && stderr.contains("is not UTF-8"), "{stderr}");
        assert!(!directory.path().join("runs").exists(), "nothing was begun");
    }
}
