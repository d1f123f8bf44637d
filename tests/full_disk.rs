//! A disk that fills while a simulated training goes on: the recording stops, the training does not, and whoever looks is told.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take on a machine that does other things too.
const LONG: Duration = Duration::from_secs(120);

/// What a file may hold stands for the disk: 24 kB. Without the signal that would end the process.
const FULL: &str = "trap '' XFSZ; ulimit -f 24;";

/// A place with a simulated training that would take an hour.
struct Training {
    place: tempfile::TempDir,
    process: Child,
    /// What it says on stderr, which goes on no disk.
    log: Arc<Mutex<String>>,
}

impl Training {
    fn start(before: &str) -> Self {
        let place = tempfile::tempdir().unwrap();
        let shipped = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("configs/sim/one_and_one.toml");
        fs::copy(shipped, place.path().join("sim.toml")).unwrap();
        let script = format!("{before} exec \"$0\" train sim.toml --steps 100000");
        let mut command = Command::new("bash");
        command.args(["-c", &script, env!("CARGO_BIN_EXE_dflash")]).current_dir(place.path());
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command.env_remove("DFLASH_RUNS").env_remove("RUST_BACKTRACE").spawn().unwrap();
        let (log, stderr) = (Arc::<Mutex<String>>::default(), BufReader::new(process.stderr.take().unwrap()));
        let kept = Arc::clone(&log);
        thread::spawn(move || {
            stderr.lines().map_while(Result::ok).for_each(|line| *kept.lock().unwrap() += &(line + "\n"))
        });
        Self { place, process, log }
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

    fn end(mut self) -> (Option<i32>, String, tempfile::TempDir) {
        assert!(Command::new("kill").args(["-INT", &self.process.id().to_string()]).status().unwrap().success());
        let code = self.process.wait().unwrap().code();
        let log = self.log();
        (code, log, self.place)
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
    assert!(training.ask(&["ctl", "status"]).contains("trouble: "));
    let (before, begin) = (training.passes(), Instant::now());
    while training.passes() < before + 20 {
        assert!(begin.elapsed() < LONG, "it does not go on: {}", training.log());
        thread::sleep(Duration::from_millis(50));
    }
    let (code, log, place) = training.end();
    assert_eq!(code, Some(130), "{log}");
    assert!(log.contains("the recording is incomplete: "), "{log}");
    let manifest: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(run_in(place.path()).join("run.json")).unwrap()).unwrap();
    assert_eq!(manifest["state"], "stopped");
    assert!(manifest["trouble"].as_str().unwrap().contains("is no longer written"), "{manifest}");
    let after = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dflash"));
        let output = command.args(arguments).current_dir(place.path()).env_remove("DFLASH_RUNS").output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let report = after(&["report"]);
    assert!(report.contains(stopped) && report.contains("its recording stopped before"), "{report}");
    assert!(after(&["report", "--format", "md"]).contains(stopped));
    let screen = after(&["top", "--once"]);
    assert!(screen.contains("INCOMPLETE") && screen.contains(stopped), "{screen}");
}
