//! How trainings end before their time, and what is left of them then: kills, stops, full disks, losses that are no numbers.

use super::{manifest, newest, only_run, state, steps, train};
use crate::training::running::Training;
use crate::training::tiny::Place;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take on a machine that does other things too.
const LONG: Duration = Duration::from_secs(300);

/// The weights grow so large with the first step that all later losses are no numbers.
#[test]
fn too_many_skipped_steps_leave_a_last_checkpoint() {
    let place = Place::new();
    let config = fs::read_to_string(place.config()).unwrap();
    fs::write(place.config(), config.replace("[train]", "[train]\nlearning_rate = 1e30")).unwrap();
    place.ok(&["prepare", "tiny.toml"]);
    let log = place.fails(4, &["train", "tiny.toml", "--steps", "100", "--set", "eval.every=15"]);
    assert!(log.contains("10 steps in a row up to step 15 "), "{log}");
    // Each is told with its batch, and counted.
    let told: Vec<_> = log.lines().filter_map(|line| line.split_once(" is skipped: its loss is ")).collect();
    assert_eq!(told.len(), 10, "{log}");
    for (_, rest) in told {
        let ids: Vec<_> = rest.split_once("; samples ").unwrap().1.split(", ").collect();
        assert!(ids.len() == 2 && ids.iter().all(|id| id.starts_with('p')), "{rest}");
    }
    let run = only_run(&place);
    assert_eq!(steps(&run), ["step-000015"]);
    let metrics = fs::read_to_string(run.join("metrics.csv")).unwrap();
    let column = metrics.lines().next().unwrap().split(',').position(|name| name == "skipped").unwrap();
    assert_eq!(metrics.lines().last().unwrap().split(',').nth(column), Some("10"), "{metrics}");
    assert_eq!(metrics.lines().last().unwrap().split(',').nth(2), Some("15"), "its row did not wait in vain");
    let init = run.join("checkpoints/step-000015/export");
    let init = init.strip_prefix(place.path("")).unwrap();
    assert!(log.contains(&format!("[drafter] init = \"{}\"", init.display())), "{log}");
    place.ok(&["export", run.to_str().unwrap(), "-o", "last"]);
}

#[test]
fn a_stop_reports_the_last_steps() {
    let place = Place::new();
    let config = fs::read_to_string(place.config()).unwrap().replace("log_every = 5", "log_every = 1000000");
    fs::write(place.config(), config + "[checkpoint]\nevery = 1\n").unwrap();
    place.ok(&["prepare", "tiny.toml"]);
    let mut child = dflash_in_the_background(&place, &["train", "tiny.toml", "--steps", "1000000"]);
    let log = Log::of(&mut child);
    // The first line names the run.
    log.until(|line| line.contains("run "));
    let (run, begin) = (only_run(&place), Instant::now());
    while !run.join("checkpoints").is_dir() || newest(&run) == 0 {
        assert!(begin.elapsed() < LONG, "no checkpoint comes");
        thread::sleep(Duration::from_millis(20));
    }
    usr1(child.id());
    while log.next().is_some() {}
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let metrics = fs::read_to_string(run.join("metrics.csv")).unwrap();
    let rows: Vec<_> = metrics.lines().skip(1).map(|row| row.split(',').nth(2).unwrap()).collect();
    assert_eq!(rows, [manifest(&run)["results"]["steps"].to_string()]);
}

/// A process that is killed at any moment, mostly in the middle of a save, leaves a run that goes on.
#[test]
fn a_kill_during_a_save_loses_nothing() {
    let place = Place::new();
    let config = fs::read_to_string(place.config()).unwrap() + "[checkpoint]\nevery = 1\nkeep = 2\n";
    fs::write(place.config(), config).unwrap();
    place.ok(&["prepare", "tiny.toml"]);
    let (mut seen, mut before) = (0, 0);
    for round in 0..5 {
        let mut child =
            dflash_in_the_background(&place, &["train", "tiny.toml", "--steps", "1000000", "--resume", "auto"]);
        let log = Log::of(&mut child);
        let head = log.until(|line| line.contains("resumed after") || line.starts_with("step "));
        assert!(!head.iter().any(|line| line.contains("warning")), "nothing is damaged: {head:?}");
        let resumed = head.last().and_then(|line| line.split_once("resumed after step ")?.1.split_once(','));
        let resumed = resumed.map(|(step, _)| step.parse::<usize>().unwrap());
        assert_eq!(round > 0, resumed.is_some(), "{head:?}");
        assert!(resumed.unwrap_or(0) >= seen, "{head:?}: there was one of step {seen}");
        // Two log lines lie five steps apart, and as many saves.
        for _ in 0..2 {
            log.until(|line| line.starts_with("step "));
        }
        thread::sleep(Duration::from_millis(7 * round));
        let run = only_run(&place);
        seen = newest(&run);
        child.kill().unwrap();
        child.wait().unwrap();
        let now = newest(&run);
        assert!(now > before, "step {now} after {before}");
        before = now;
    }
}

fn dflash_in_the_background(place: &Place, arguments: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dflash"));
    command.args(arguments).current_dir(place.path(".")).env_remove("DFLASH_RUNS");
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

fn usr1(process: u32) {
    assert!(Command::new("kill").args(["-USR1", &process.to_string()]).status().unwrap().success());
}

/// What a process says on stderr, line by line, with a deadline.
struct Log(Receiver<String>);

impl Log {
    fn of(process: &mut Child) -> Self {
        let (send, log) = channel();
        let stderr = BufReader::new(process.stderr.take().unwrap());
        thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Self(log)
    }

    /// `None`: it has ended.
    fn next(&self) -> Option<String> {
        match self.0.recv_timeout(LONG) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("it has said nothing for {LONG:?}"),
        }
    }

    /// All lines up to one that is as wanted.
    fn until(&self, wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let mut lines = Vec::new();
        while !lines.last().is_some_and(|line: &String| wanted(line)) {
            let line = self.next();
            lines.push(line.unwrap_or_else(|| panic!("it ended by itself: {lines:?}")));
        }
        lines
    }
}

/// Files of at most 200 kB stand for a disk that fills: a state of 300 kB finds no room, an export does.
#[test]
fn a_disk_that_fills_during_a_save_costs_the_checkpoint_and_nothing_else() {
    let place = Place::new();
    place.ok(&["prepare", "tiny.toml"]);
    let run = train(&place, &["tiny.toml", "--steps", "4"]);
    let first = run.join("checkpoints/step-000004");
    let before = state(&first);
    let config = fs::read_to_string(place.config()).unwrap() + "[checkpoint]\nevery = 3\n";
    fs::write(place.config(), config).unwrap();
    let command = format!(
        "trap '' XFSZ; ulimit -f 200; exec {} train tiny.toml --steps 8 --resume {}",
        env!("CARGO_BIN_EXE_dflash"),
        run.display()
    );
    let output = Command::new("bash").args(["-c", &command]).current_dir(place.path(".")).output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{log}");
    for step in [6, 8] {
        let warning = format!("warning: checkpoint: step {step} could not be written: cannot write ");
        assert!(log.contains(&warning), "no {warning:?} in\n{log}");
    }
    assert_eq!(steps(&run), ["export", "step-000004"], "nothing half is left");
    assert_eq!(state(&first), before);
    assert!(place.ok(&["dump", run.to_str().unwrap()]).contains("could not be written"), "it is in the timeline too");
}

/// SIGUSR1 and a time limit end a run with a checkpoint and exit code 0; the next attempt takes it up.
#[test]
fn an_end_in_good_time_is_no_failure() {
    let place = Place::new();
    let config = fs::read_to_string(place.config()).unwrap() + "[checkpoint]\non_stop = \"drain\"\n";
    fs::write(place.config(), config).unwrap();
    place.ok(&["prepare", "tiny.toml"]);
    let training = Training::with(&place, |command| {
        command.args(["--resume", "auto"]);
    });
    let run = training.run.clone();
    usr1(u32::try_from(manifest(&run)["pid"].as_u64().unwrap()).unwrap());
    assert_eq!(training.end(), Some(0));
    let ended = || (manifest(&run)["state"].clone(), manifest(&run)["attempt"].clone());
    let made = || manifest(&run)["results"]["steps"].as_u64().unwrap();
    assert_eq!(ended(), ("stopped".into(), 1.into()));
    let first = made();
    assert!(run.join(format!("checkpoints/step-{first:06}/state.json")).is_file());

    place.ok(&["train", "tiny.toml", "--steps", "1000000", "--resume", "auto", "--time-limit", "2s"]);
    assert_eq!(ended(), ("stopped".into(), 2.into()));
    // On a slow machine nothing may have been made in that time.
    assert!(made() >= first);
}
