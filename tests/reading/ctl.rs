//! `dflash ctl` against a process that records, and against runs that cannot be controlled.

use super::support::{dflash, recorded_run};
use dflash_reports::timeline::{Manifest, RunDir, read};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Another process that records: the profiler's example `live`.
pub struct Live {
    pub process: Child,
    pub run: RunDir,
}

impl Live {
    pub fn start(directory: &Path) -> Self {
        Self::with_runtime_directory(directory, None)
    }

    fn with_runtime_directory(directory: &Path, runtime: Option<&Path>) -> Self {
        let mut command = Command::new(example());
        command.arg("runs").current_dir(directory).stdout(Stdio::piped()).env_remove("XDG_RUNTIME_DIR");
        command.envs(runtime.map(|runtime| ("XDG_RUNTIME_DIR", runtime)));
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let run = RunDir::open(directory.join(line.trim())).unwrap();
        Self { process, run }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // It has ended, unless the test failed before.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Builds the example. It is not a dependency: that would bring the spans back into a binary built without them.
fn example() -> PathBuf {
    example_of("dflash-profiler", "live")
}

/// Builds an example of a crate.
pub fn example_of(package: &str, name: &str) -> PathBuf {
    let build = ["build", "-q", "-p", package, "--example", name, "--offline", "--locked"];
    let mut command = Command::new(env!("CARGO"));
    command.args(build).args(["--message-format", "json"]).current_dir(env!("CARGO_MANIFEST_DIR"));
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let messages = output.stdout.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok());
    let mut programs = messages.filter(|message: &Value| message["target"]["name"] == name);
    programs.find_map(|message| message["executable"].as_str().map(PathBuf::from)).expect("cargo says where it is")
}

#[test]
fn a_run_that_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let live = Live::start(dir.path());
    let ok = |arguments: &[&str]| {
        let said = dflash(dir.path(), &[&["ctl"], arguments].concat());
        assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.stderr);
        said.stdout
    };
    let status = ok(&["status"]);
    assert!(status.contains(&format!("process {}, rank 0, attempt 1", live.process.id())), "{status}");
    assert!(status.contains("drafter:0") && status.contains("requests: checkpoint, stop"), "{status}");
    let json: Value = serde_json::from_str(&ok(&["--json", "status"])).unwrap();
    assert_eq!(json["status"]["level"], "stages");
    assert_eq!(ok(&[&live.run.name(), "level", "layers"]), "level: stages -> layers, by ctl\n");
    assert_eq!(ok(&["mark", "the learning rate was lowered"]), "marked\n");
    let trace = ok(&["kernels", "2"]);
    assert!(dir.path().join(trace.trim()).is_file(), "{trace}");
    let checkpoint = ok(&["checkpoint"]);
    assert!(checkpoint.trim().ends_with("/checkpoint"), "{checkpoint}");
    refusals(dir.path());
    assert_eq!(ok(&["stop"]), "the training ends after the step that runs\n");
    let mut live = live;
    assert!(live.process.wait().unwrap().success());
    let said = dflash(dir.path(), &["ctl", "status"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("is over (stopped): only a run that goes on can be controlled"), "{}", said.stderr);
    let marks: Vec<String> = read(&live.run).unwrap().marks.into_iter().map(|mark| mark.text).collect();
    assert_eq!(marks[0], "level: stages -> layers, by ctl");
    assert!(
        marks.contains(&"the learning rate was lowered".to_owned())
            && marks.contains(&"stop: asked for, by ctl".to_owned())
    );
}

/// What the run refuses is a failure (4), what was typed wrong is the user's (2); either leaves stdout empty.
fn refusals(directory: &Path) {
    for (code, arguments) in [
        (4, &["ctl", "mark", " "][..]),
        (4, &["ctl", "--rank", "7", "status"]),
        (2, &["ctl", "level", "everything"]),
        (2, &["ctl", "cpu", "soon"]),
        (2, &["ctl", "kernels", "0"]),
        (2, &["ctl", "nowhere", "status"]),
        (2, &["ctl"]),
    ] {
        let said = dflash(directory, arguments);
        assert_eq!((said.code, said.stdout.as_str()), (Some(code), ""), "{arguments:?}: {}", said.stderr);
    }
    let said = dflash(directory, &["ctl", "mark", " ", "--json"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(4), "{\"error\":\"a mark needs a text\"}\n"));
}

#[test]
fn a_process_that_was_killed_is_over() {
    let dir = tempfile::tempdir().unwrap();
    let mut live = Live::start(dir.path());
    let socket = live.run.manifest().unwrap().control.unwrap();
    live.process.kill().unwrap();
    live.process.wait().unwrap();
    assert!(socket.exists(), "SIGKILL leaves it");
    let said = dflash(dir.path(), &["ctl", "status"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("is over (died)"), "{}", said.stderr);
    std::fs::remove_file(socket).unwrap();
}

#[test]
fn the_socket_lies_in_the_runtime_directory_if_its_path_is_short_enough() {
    use std::os::unix::fs::PermissionsExt;
    // The path of the temporary directory may be too long by itself.
    let dir = tempfile::tempdir_in("/tmp").unwrap();
    for (length, fits) in [(1, true), (100, false)] {
        let runtime = dir.path().join("r".repeat(length));
        std::fs::create_dir(&runtime).unwrap();
        std::fs::set_permissions(&runtime, std::fs::Permissions::from_mode(0o700)).unwrap();
        let mut live = Live::with_runtime_directory(dir.path(), Some(&runtime));
        let socket = live.run.manifest().unwrap().control.expect("there is a way out");
        assert_eq!(socket.starts_with(&runtime), fits, "{}", socket.display());
        assert_eq!(dflash(dir.path(), &["ctl", "stop"]).code, Some(0));
        assert!(live.process.wait().unwrap().success());
        assert!(!socket.exists());
    }
}

#[test]
fn runs_that_cannot_be_controlled() {
    let dir = tempfile::tempdir().unwrap();
    let stderr = |code: i32, arguments: &[&str]| {
        let said = dflash(dir.path(), arguments);
        assert_eq!((said.code, said.stdout.as_str()), (Some(code), ""), "{}", said.stderr);
        said.stderr
    };
    assert!(stderr(2, &["ctl", "status"]).contains("runs holds no run"));
    let finished = recorded_run(dir.path(), "done", 1.0);
    assert!(stderr(2, &["ctl", &finished.name(), "stop"]).contains("is over (finished)"));
    let mut manifest = Manifest::default();
    manifest.host = "gpu-7".into();
    let elsewhere = RunDir::create(&dir.path().join("runs"), "far", manifest).unwrap();
    let said = stderr(2, &["ctl", &elsewhere.name(), "stop"]);
    assert!(said.contains("the trainer runs on gpu-7: nothing can be controlled from here"), "{said}");
    let mute = RunDir::create(&dir.path().join("runs"), "mute", Manifest::default());
    // This process is not that run's, but it lives on this machine.
    let said = stderr(4, &["ctl", &mute.unwrap().name(), "stop"]);
    assert!(said.contains("takes no requests"), "{said}");
}
