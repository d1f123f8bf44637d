//! A disk that fills, or can only be read any more, while a simulated training goes on: the recording stops, the training
//! does not, and whoever looks is told.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take on a machine that does other things too.
const LONG: Duration = Duration::from_secs(120);

/// What a file may hold stands for the disk: 24 kB. Without the signal that would end the process.
const FULL: &str = "trap '' XFSZ; ulimit -f 24;";

/// Tells this test's process, started anew, that it has mounts of its own.
const CHILD: &str = "DFLASH_TEST_READ_ONLY_DISK";

/// A place with a simulated training that would take an hour.
struct Training {
    place: tempfile::TempDir,
    process: Child,
    /// What it says on stderr, which goes on no disk.
    log: Arc<Mutex<String>>,
    /// Whoever reads that is through with it.
    whole: Receiver<()>,
}

impl Training {
    fn start(before: &str) -> Self {
        let shipped = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("configs/sim/one_and_one.toml");
        Self::of(&fs::read_to_string(shipped).unwrap(), before)
    }

    fn of(config: &str, before: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("sim.toml"), config).unwrap();
        let script = format!("{before} exec \"$0\" train sim.toml --steps 100000000");
        let mut command = Command::new("bash");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_dflash")]).current_dir(place.path());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.env_remove("DFLASH_RUNS").env_remove("RUST_BACKTRACE").spawn().unwrap();
        let (log, stderr) = (Arc::<Mutex<String>>::default(), BufReader::new(process.stderr.take().unwrap()));
        let (kept, (through, whole)) = (Arc::clone(&log), channel());
        thread::spawn(move || {
            stderr.lines().map_while(Result::ok).for_each(|line| *kept.lock().unwrap() += &(line + "\n"));
            // The test may have failed meanwhile.
            let _ = through.send(());
        });
        Self { place, process, log, whole }
    }

    fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    fn ask(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dflash"));
        let output = command.args(arguments).current_dir(self.place.path()).env_remove("DFLASH_RUNS").output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Asks until the answer is as wanted.
    fn until(&mut self, arguments: &[&str], is: impl Fn(&str) -> bool) -> String {
        let begin = Instant::now();
        loop {
            let answer = self.ask(arguments);
            if is(&answer) {
                return answer;
            }
            assert!(self.process.try_wait().unwrap().is_none(), "it has ended: {}", self.log());
            assert!(begin.elapsed() < LONG, "{arguments:?} says\n{answer}\nand the training\n{}", self.log());
            thread::sleep(Duration::from_millis(200));
        }
    }

    /// Passes of the drafter that have begun, as the training says itself. It is asked again if it did not answer in time.
    fn passes(&mut self) -> u64 {
        let is_json = |answer: &str| serde_json::from_str::<serde_json::Value>(answer).is_ok();
        let answer = self.until(&["ctl", "status", "--json"], is_json);
        let status: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let lanes = status["status"]["lanes"].as_array().unwrap_or_else(|| panic!("{status}"));
        lanes.iter().find(|lane| lane["name"] == "drafter:0").unwrap()["begun"].as_u64().unwrap()
    }

    fn goes_on(&mut self) {
        let (before, begin) = (self.passes(), Instant::now());
        while self.passes() < before + 20 {
            assert!(begin.elapsed() < LONG, "it does not go on: {}", self.log());
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// Ends it, and all of its ranks; its exit code and what it said.
    fn end(&mut self) -> (Option<i32>, String) {
        assert!(Command::new("kill").args(["-INT", &self.process.id().to_string()]).status().unwrap().success());
        self.whole.recv_timeout(LONG).unwrap_or_else(|error| panic!("it does not end ({error}): {}", self.log()));
        (self.process.wait().unwrap().code(), self.log())
    }
}

impl Drop for Training {
    fn drop(&mut self) {
        // It has ended, unless the test failed before: then it would train for ever.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn run_in(place: &Path) -> PathBuf {
    fs::read_dir(place.join("runs")).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn the_recording_stops_and_the_training_does_not() {
    let mut training = Training::start(FULL);
    let stopped = "the recording is incomplete";
    let both = |text: &str| text.contains("rank0-000001.dft: cannot") && text.contains("iterations.csv: cannot");
    let report = training.until(&["report"], both);
    assert!(report.contains(stopped) && report.contains("running"), "{report}");
    let screen = training.ask(&["top", "--once"]);
    assert!(screen.contains("INCOMPLETE") && screen.contains(stopped), "{screen}");
    training.until(&["ctl", "status"], |text| text.contains("trouble: "));
    training.goes_on();
    let (code, log) = training.end();
    assert_eq!(code, Some(130), "{log}");
    assert!(log.contains("the recording is incomplete: "), "{log}");
    let manifest: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(run_in(training.place.path()).join("run.json")).unwrap()).unwrap();
    assert_eq!(manifest["state"], "stopped");
    assert!(manifest["trouble"].as_str().unwrap().contains("is no longer written"), "{manifest}");
    let report = training.ask(&["report"]);
    assert!(report.contains(stopped) && report.contains("its recording stopped before"), "{report}");
    assert!(training.ask(&["report", "--format", "md"]).contains(stopped));
    let screen = training.ask(&["top", "--once"]);
    assert!(screen.contains("INCOMPLETE") && screen.contains(stopped), "{screen}");
}

#[test]
fn a_rank_whose_disk_is_full_is_named() {
    let port = crate::ports::free_port();
    let ranks = format!("export WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT={port};");
    let second = format!("({FULL} RANK=1 LOCAL_RANK=1 exec \"$0\" train sim.toml --steps 100000000) &");
    let mut training = Training::start(&format!("{ranks} {second} export RANK=0 LOCAL_RANK=0;"));
    let named = |text: &str| text.contains("rank 1: ") && text.contains("rank1-000001.dft: cannot");
    let report = training.until(&["report"], named);
    assert!(report.contains("the recording is incomplete: rank 1: "), "{report}");
    training.until(&["top", "--once"], |text| text.contains("INCOMPLETE") && text.contains("incomplete: rank 1: "));
    training.until(&["ctl", "status"], |text| text.contains("trouble: rank 1: "));
    training.until(&["runs"], |text| text.contains("the recording is incomplete: rank 1: "));
    training.goes_on();
    let (code, log) = training.end();
    assert_eq!(code, Some(130), "{log}");
    let manifest = fs::read_to_string(run_in(training.place.path()).join("run.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&manifest).unwrap();
    assert_eq!(
        (&manifest["state"], &manifest["trouble"]),
        (&"stopped".into(), &serde_json::Value::Null),
        "rank 0 is well"
    );
}

#[test]
#[ignore = "started by the test below with mounts of its own"]
fn child_of_the_read_only_disk() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    // Its segments fill within seconds: what is open can still be written, the next one cannot be made.
    let config = "[run]\nname = \"a\"\n[pipeline]\ntarget_device = \"sim:0\"\ndrafter_device = \"sim:1\"\n\
        [profile]\nkeep = \"1 MB\"\n[sim.stages]\n\"target.forward\" = \"2 ms\"\n\"drafter.forward\" = \"2 ms\"\n";
    let mut training = Training::of(config, "");
    training.until(&["ctl", "status"], |text| text.contains("drafter:0"));
    let over = |script: &str| {
        let mut command = Command::new("sh");
        assert!(command.args(["-c", script]).current_dir(training.place.path()).status().unwrap().success());
    };
    over("mount --bind runs runs && mount -o remount,bind,ro runs");
    let said =
        |text: &str| text.contains("the timeline is no longer written") && text.contains("Read-only file system");
    training.until(&["ctl", "status"], |text| text.contains("trouble: ") && said(text));
    training.until(&["report"], |text| text.contains("the recording is incomplete") && said(text));
    training.until(&["top", "--once"], |text| text.contains("INCOMPLETE") && text.contains("no longer written"));
    training.goes_on();
    let (code, log) = training.end();
    assert!(log.contains("the recording is incomplete: ") && log.contains("run.json: cannot write it"), "{log}");
    assert!(!log.contains("panicked"), "{log}");
    assert_eq!(code, Some(130), "{log}");
    println!("all is well");
}

#[test]
fn a_disk_that_becomes_read_only_stops_the_recording_alone() {
    let place = tempfile::tempdir().unwrap();
    let with_mounts = |command: &[&str]| {
        let mut unshare = Command::new("unshare");
        unshare.args(["--map-root-user", "--mount"]).args(command).current_dir(place.path());
        // Whatever is left there goes with the place.
        unshare.env(CHILD, "1").env("TMPDIR", place.path()).output()
    };
    let try_it = "mkdir tried && mount --bind tried tried && mount -o remount,bind,ro tried && ! touch tried/file";
    if !with_mounts(&["sh", "-c", try_it]).is_ok_and(|tried| tried.status.success()) {
        println!("skipped: no one here may mount a file system of his own");
        return;
    }
    let own = std::env::current_exe().unwrap();
    let test = "full_disk::child_of_the_read_only_disk";
    let output = with_mounts(&[own.to_str().unwrap(), test, "--exact", "--ignored", "--nocapture"]).unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("all is well"), "{text}");
}
