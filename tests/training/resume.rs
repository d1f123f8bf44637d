//! Checkpoints, and trainings that go on from them.

use super::tiny::Place;
use safetensors::SafeTensors;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Duration;

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

/// 13 steps at once, and 7 of them again after the first 6: weights and moments are the same bit for bit. Ten samples in
/// batches of two make five steps an epoch, so that 6 lies within one.
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
    assert_eq!(figures(&run.join("checkpoints/step-000006"))["loader"]["epoch"], 1);
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

    // As a run looks whose machine was lost.
    let path = second.join("run.json");
    let json = fs::read_to_string(&path).unwrap().replace("\"finished\"", "\"running\"");
    fs::write(&path, json).unwrap();
    assert!(place.fails(2, &["train", "tiny.toml", "--resume", "auto"]).contains("has made all its 12 steps"));
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
    let mut before = 0;
    for round in 0..5 {
        let mut child =
            dflash_in_the_background(&place, &["train", "tiny.toml", "--steps", "1000000", "--resume", "auto"]);
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let resumed = log.by_ref().find(|line| line.contains("resumed after") || line.contains("step ")).unwrap();
        assert_eq!(round > 0, resumed.contains("resumed after step"), "{resumed}");
        assert!(!resumed.contains("warning"), "nothing is damaged: {resumed}");
        // Two log lines lie five steps apart, and as many saves.
        let lines = log.by_ref().filter(|line| line.starts_with("step ")).take(2);
        assert_eq!(lines.count(), 2);
        std::thread::sleep(Duration::from_millis(7 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        let run = fs::read_dir(place.path("runs")).unwrap().next().unwrap().unwrap().path();
        let now =
            steps(&run).iter().filter_map(|name| name.strip_prefix("step-")?.parse::<usize>().ok()).max().unwrap();
        assert!(now > before, "step {now} after {before}");
        before = now;
    }
    assert_eq!(fs::read_dir(place.path("runs")).unwrap().count(), 1);
}

fn dflash_in_the_background(place: &Place, arguments: &[&str]) -> std::process::Child {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_dflash"));
    command.args(arguments).current_dir(place.path(".")).env_remove("DFLASH_RUNS");
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap()
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
    let endless = ["train", "tiny.toml", "--steps", "1000000", "--resume", "auto"];
    let mut child = dflash_in_the_background(&place, &endless);
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    log.find(|line| line.contains("step ")).unwrap();
    let kill = std::process::Command::new("kill").args(["-USR1", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    log.for_each(drop);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let run = fs::read_dir(place.path("runs")).unwrap().next().unwrap().unwrap().path();
    let manifest = || serde_json::from_str::<Value>(&fs::read_to_string(run.join("run.json")).unwrap()).unwrap();
    let made = manifest()["results"]["steps"].as_u64().unwrap();
    assert_eq!((manifest()["state"].as_str(), manifest()["attempt"].as_u64()), (Some("stopped"), Some(1)));
    assert!(run.join(format!("checkpoints/step-{made:06}/state.json")).is_file());

    place.ok(&[&endless[..], &["--time-limit", "1s"]].concat());
    assert_eq!((manifest()["state"].as_str(), manifest()["attempt"].as_u64()), (Some("stopped"), Some(2)));
    assert!(manifest()["results"]["steps"].as_u64().unwrap() > made);
}
