//! A training in a process of its own, and what a test waits for: never without a deadline.

use super::tiny::Place;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long a step, or an answer, may take on a machine that does other things too.
const LONG: Duration = Duration::from_secs(300);

/// A training that would take days.
pub struct Training {
    process: Child,
    /// Its log, line by line, read whether or not somebody waits for it: it must not wait for a reader.
    log: Receiver<String>,
    pub run: PathBuf,
}

impl Training {
    pub fn start(place: &Place) -> Self {
        Self::with(place, |_| ())
    }

    /// One whose process is made as `change` wants it.
    pub fn with(place: &Place, change: impl FnOnce(&mut Command)) -> Self {
        place.ok(&["prepare", "tiny.toml"]);
        let mut command = Command::new(env!("CARGO_BIN_EXE_dflash"));
        command.args(["train", "tiny.toml", "--steps", "1000000"]).current_dir(place.path("."));
        change(&mut command);
        let mut process = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let (send, log) = channel();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        let mut training = Self { process, log, run: PathBuf::new() };
        training.wait_for_a_step();
        training.run = fs::read_dir(place.path("runs")).unwrap().next().unwrap().unwrap().path();
        training
    }

    /// Until a log line that comes from now on says that steps are being made.
    pub fn wait_for_a_step(&mut self) {
        while self.log.try_recv().is_ok() {}
        let begin = Instant::now();
        loop {
            let left = LONG.saturating_sub(begin.elapsed());
            let line = self.log.recv_timeout(left).expect("it ended by itself, or makes no step");
            if line.contains("step ") {
                return;
            }
        }
    }

    /// Waits for its end. Returns its exit code.
    pub fn end(mut self) -> Option<i32> {
        wait(&mut self.process, "the training").code()
    }
}

impl Drop for Training {
    fn drop(&mut self) {
        // It has ended, unless the test failed before.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `dflash ctl` in this place.
pub fn ctl(place: &Place, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dflash"));
    command.arg("ctl").args(arguments).current_dir(place.path(".")).env_remove("DFLASH_RUNS");
    let mut asked = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // What it says fits into a pipe.
    wait(&mut asked, "dflash ctl");
    asked.wait_with_output().unwrap()
}

fn wait(process: &mut Child, what: &str) -> ExitStatus {
    let begin = Instant::now();
    loop {
        if let Some(status) = process.try_wait().unwrap() {
            return status;
        }
        if begin.elapsed() > LONG {
            let _ = process.kill();
            panic!("{what} has not ended within {LONG:?}");
        }
        thread::sleep(Duration::from_millis(20));
    }
}
