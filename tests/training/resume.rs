//! Checkpoints, and trainings that go on from them.

use super::running::Training;
use super::tiny::Place;
use safetensors::SafeTensors;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

/// How long anything may take on a machine that does other things too.
const LONG: Duration = Duration::from_secs(300);

/// Every tensor of a checkpoint's state, as bytes by name.
fn state(checkpoint: &Path) -> Vec<(String, Vec<u8>)> {
    let bytes = fs::read(checkpoint.join("state.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors: Vec<_> = file.tensors().into_iter().map(|(name, view)| (name, view.data().to_vec())).collect();
    tensors.sort();
    tensors
}

fn figures(checkpoint: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(checkpoint.join("state.json")).unwrap()).unwrap()
}

pub fn train(place: &Place, arguments: &[&str]) -> PathBuf {
    place.path(place.ok(&[&["train"], arguments].concat()).trim())
}

fn steps(run: &Path) -> Vec<String> {
    let entries = fs::read_dir(run.join("checkpoints")).unwrap();
    let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// A run that ended, for whatever reason, right after the checkpoint of a step.
fn cut(run: &Path, step: usize) {
    for name in steps(run) {
        let later = name.strip_prefix("step-").is_none_or(|n| n.parse::<usize>().unwrap() > step);
        if later {
            fs::remove_dir_all(run.join("checkpoints").join(name)).unwrap();
        }
    }
}

fn manifest(run: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(run.join("run.json")).unwrap()).unwrap()
}

/// The only run there is.
fn only_run(place: &Place) -> PathBuf {
    let runs: Vec<_> = fs::read_dir(place.path("runs")).unwrap().map(|run| run.unwrap().path()).collect();
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.into_iter().next().unwrap()
}

/// Step of a run's newest checkpoint; 0: there is none.
fn newest(run: &Path) -> usize {
    let step = |name: &String| name.strip_prefix("step-")?.parse().ok();
    steps(run).iter().filter_map(step).max().unwrap_or(0)
}

/// 13 steps at once, and 7 of them again after the first 6: weights and moments are the same bit for bit. Ten samples in
/// picks of two make five picks an epoch, so that neither 6 nor 12 of them end one.
fn resumes_exactly(changes: &[(&str, &str)]) {
    let place = Place::new();
    let config = fs::read_to_string(place.config()).unwrap().replace("\"memory\"", "\"off\"");
    let config = changes.iter().fold(config, |config, (from, to)| {
        assert!(config.contains(from), "{from}");
        config.replace(from, to)
    });
    fs::write(place.config(), config + "[checkpoint]\nevery = 6\nkeep = 0\n").unwrap();
    place.ok(&["prepare", "tiny.toml"]);
    let run = train(&place, &["tiny.toml", "--steps", "13"]);
    assert_eq!(steps(&run), ["export", "step-000006", "step-000012", "step-000013"]);
    let last = run.join("checkpoints/step-000013");
    let (want, drafter) = (state(&last), fs::read(run.join("checkpoints/export/model.safetensors")).unwrap());
    assert!(want.iter().any(|(name, _)| name == "fc.weight.master"));
    assert_ne!(state(&run.join("checkpoints/step-000012")), want, "steps change something");

    cut(&run, 6);
    assert_ne!(figures(&run.join("checkpoints/step-000006"))["loader"]["index"], 0, "within an epoch");
    assert_eq!(train(&place, &["--resume", run.to_str().unwrap()]), run);
    assert_eq!(state(&last), want);
    assert_eq!(fs::read(run.join("checkpoints/export/model.safetensors")).unwrap(), drafter);
    assert_eq!(figures(&last)["attempt"], 2);
    let metrics = fs::read_to_string(run.join("metrics.csv")).unwrap();
    let rows: Vec<Vec<&str>> = metrics.lines().skip(1).map(|l| l.split(',').skip(1).take(2).collect()).collect();
    assert_eq!(rows, [["1", "5"], ["1", "10"], ["1", "13"], ["2", "10"], ["2", "13"]]);
    let iterations = fs::read_to_string(run.join("iterations.csv")).unwrap();
    assert!(iterations.lines().any(|line| line.starts_with("1,2,0,drafter:0,")), "a second attempt");
    assert!(!place.ok(&["report", run.to_str().unwrap()]).contains("torn"));
}

#[test]
fn a_resumed_training_is_the_same_bit_for_bit() {
    resumes_exactly(&[]);
}

#[test]
fn so_is_one_with_muon_and_the_whole_vocabulary() {
    resumes_exactly(&[("\"candidates\"", "\"full\""), ("[train]", "[train]\noptimizer = \"muon\"")]);
}

#[test]
fn so_is_one_that_accumulates() {
    resumes_exactly(&[("[train]", "[train]\naccumulate = 2")]);
}

#[test]
fn so_is_one_with_two_targets() {
    resumes_exactly(&[("[pipeline]", "[pipeline]\ntarget_devices = [\"cpu\", \"cpu\"]")]);
}

#[test]
fn so_is_one_with_two_drafters() {
    let two = "[pipeline]\ndrafter_devices = [\"cpu\", \"cpu\"]";
    resumes_exactly(&[("[pipeline]", two), ("batch = 2", "batch = 1")]);
}

#[test]
fn a_damaged_newest_checkpoint_costs_no_good_one() {
    let place = Place::new();
    let config = fs::read_to_string(place.config()).unwrap();
    fs::write(place.config(), format!("{config}[checkpoint]\nevery = 2\nkeep = 2\n")).unwrap();
    place.ok(&["prepare", "tiny.toml"]);
    let run = train(&place, &["tiny.toml", "--steps", "4"]);
    assert_eq!(steps(&run), ["export", "step-000002", "step-000004"]);
    let weights = run.join("checkpoints/step-000004/state.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&weights, bytes).unwrap();
    fs::write(place.config(), format!("{config}[checkpoint]\nkeep = 1\n")).unwrap();
    let resumed = place.dflash(&["train", "tiny.toml", "--steps", "3", "--resume", run.to_str().unwrap()]);
    let log = String::from_utf8(resumed.stderr).unwrap();
    assert_eq!(resumed.status.code(), Some(0), "{log}");
    assert!(log.contains("is damaged (its checksum is") && log.contains("resumed after step 2,"), "{log}");
    assert_eq!(steps(&run), ["export", "step-000003", "step-000004.damaged"]);
}

/// The weights grow so large with the first step that all later losses are no numbers.
#[test]
fn too_many_skipped_steps_leave_a_last_checkpoint() {
    let place = Place::new();
    let config = fs::read_to_string(place.config()).unwrap();
    fs::write(place.config(), config.replace("[train]", "[train]\nlearning_rate = 1e30")).unwrap();
    place.ok(&["prepare", "tiny.toml"]);
    let log = place.fails(4, &["train", "tiny.toml", "--steps", "100"]);
    assert!(log.contains("10 steps in a row up to step 15 "), "{log}");
    let run = only_run(&place);
    assert_eq!(steps(&run), ["step-000015"]);
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

#[test]
fn a_simulation_has_nothing_to_go_on_from() {
    let place = Place::new();
    let sim = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs/sim/one_and_one.toml");
    let run = train(&place, &[sim.to_str().unwrap(), "--steps", "2"]);
    let refused = place.fails(2, &["train", "--resume", run.to_str().unwrap(), "--steps", "4"]);
    assert!(refused.contains("a simulated training has no checkpoints to go on from"), "{refused}");
}

#[test]
fn a_checkpoint_of_something_else_is_refused_by_name() {
    let place = Place::new();
    place.ok(&["prepare", "tiny.toml"]);
    let run = train(&place, &["tiny.toml", "--steps", "2"]);
    let resume = ["train", "tiny.toml", "--steps", "4", "--resume", run.to_str().unwrap()];
    let config = fs::read_to_string(place.config()).unwrap();
    let changed = config.replace("anchors = 6", "anchors = 5\nclip = 0.5").replace("hs_queue = 4", "hs_queue = 2");
    fs::write(place.config(), changed).unwrap();
    let refused = place.fails(2, &resume);
    for part in ["train.anchors is 6 in the checkpoint and 5 now", "train.clip is 1.0 in the checkpoint and 0.5 now"] {
        assert!(refused.contains(part), "{refused}");
    }
    assert!(!refused.contains("train.batch") && !refused.contains("steps is"), "{refused}");

    // Another target: its weights are other ones, and the texts were prepared anew.
    fs::write(place.config(), &config).unwrap();
    let weights = place.path("model/model.safetensors");
    let mut bytes = fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&weights, bytes).unwrap();
    place.ok(&["prepare", "tiny.toml", "--force"]);
    let refused = place.fails(2, &resume);
    assert!(refused.contains("prepared from model.safetensors is sha256 "), "{refused}");
    assert!(place.fails(2, &["train", "--resume", "nowhere"]).contains("nowhere"));
}

#[test]
fn auto_goes_on_with_what_is_unfinished() {
    let place = Place::new();
    place.ok(&["prepare", "tiny.toml"]);
    let auto = ["tiny.toml", "--resume", "auto"];
    let first = train(&place, &auto);
    assert_eq!(steps(&first), ["export", "step-000012"], "nothing to go on with: a run of its own");
    let second = train(&place, &auto);
    assert_ne!(first, second, "the first has come to its end");

    // As a run looks whose machine was lost after the last checkpoint: only its end is left to do.
    let path = second.join("run.json");
    let lost = || fs::write(&path, fs::read_to_string(&path).unwrap().replace("\"finished\"", "\"running\"")).unwrap();
    lost();
    let export = second.join("checkpoints/export");
    let drafter = fs::read(export.join("model.safetensors")).unwrap();
    fs::remove_dir_all(&export).unwrap();
    assert_eq!(train(&place, &auto), second);
    assert_eq!(fs::read(export.join("model.safetensors")).unwrap(), drafter);
    assert_eq!((&manifest(&second)["state"], &manifest(&second)["attempt"]), (&"finished".into(), &1.into()));
    let again = ["train", "--resume", second.to_str().unwrap()];
    assert!(place.fails(2, &again).contains("has made all its 12 steps"));
    lost();
    let longer = train(&place, &["tiny.toml", "--resume", "auto", "--steps", "14"]);
    assert_eq!(longer, second);
    assert_eq!(steps(&second), ["export", "step-000012", "step-000014"]);
    assert!(place.fails(2, &["train", "--resume", "auto"]).contains("needs a configuration"));
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
    let output =
        std::process::Command::new("bash").args(["-c", &command]).current_dir(place.path(".")).output().unwrap();
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
