//! Checkpoints, and trainings that go on from them.

mod ends;
mod exact;

use super::tiny::Place;
use safetensors::SafeTensors;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Every tensor of a checkpoint's state, as bytes by name.
pub fn state(checkpoint: &Path) -> Vec<(String, Vec<u8>)> {
    let bytes = fs::read(checkpoint.join("state.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let mut tensors: Vec<_> = file.tensors().into_iter().map(|(name, view)| (name, view.data().to_vec())).collect();
    tensors.sort();
    tensors
}

pub fn figures(checkpoint: &Path) -> Value {
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
pub fn cut(run: &Path, step: usize) {
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

#[test]
fn batches_that_came_as_they_were_made_cannot_be_gone_on_from_exactly() {
    let place = Place::new();
    let several = "[pipeline]\ntarget_devices = [\"cpu\", \"cpu\"]\norder = \"arrival\"";
    let config = fs::read_to_string(place.config()).unwrap().replace("[pipeline]", several);
    fs::write(place.config(), config).unwrap();
    place.ok(&["prepare", "tiny.toml"]);
    let run = train(&place, &["tiny.toml", "--steps", "3"]);
    let resumed = place.dflash(&["train", "--resume", run.to_str().unwrap(), "--steps", "5"]);
    let log = String::from_utf8(resumed.stderr).unwrap();
    assert!(resumed.status.success() && log.contains("warning: not resumed exactly: "), "{log}");
    assert!(place.ok(&["dump", run.to_str().unwrap()]).contains("not resumed exactly"), "it is in the timeline too");
}

#[test]
fn a_learning_rate_may_be_changed_on_purpose_and_a_batch_may_not() {
    let place = Place::new();
    place.ok(&["prepare", "tiny.toml"]);
    let run = train(&place, &["tiny.toml", "--steps", "3"]);
    let run = run.to_str().unwrap();
    let refused = place.fails(2, &["train", "--resume", run, "--steps", "5", "--set", "train.batch=3"]);
    assert!(refused.contains("train.batch is 2 in the checkpoint and 3 now"), "{refused}");
    let changed = ["train", "--resume", run, "--steps", "5", "--set", "train.learning_rate=1e-4"];
    let resumed = place.dflash(&changed);
    let log = String::from_utf8(resumed.stderr).unwrap();
    for line in [
        "changed: train.learning_rate is 0.0001 from here on, 0.0006 before",
        "changed: train.steps is 5 from here on, 3 before",
    ] {
        assert!(resumed.status.success() && log.contains(line), "{log}");
        assert!(place.ok(&["dump", run]).contains(line), "it is in the timeline too");
    }
    let config = fs::read_to_string(place.config()).unwrap().replace("[train]", "[train]\nlearning_rate = 2e-3");
    fs::write(place.config(), config).unwrap();
    let refused = place.fails(2, &["train", "tiny.toml", "--resume", run, "--steps", "7"]);
    let way = "train.learning_rate is 0.0001 in the checkpoint and 0.002 now (--set train.learning_rate=0.002 changes it on purpose)";
    assert!(refused.contains(way), "{refused}");
    assert!(
        place.fails(2, &["train", "tiny.toml", "--set", "train.stepz=1"]).contains("did you mean `steps` in [train]?")
    );
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
    let mut evaluated = manifest(&second);
    evaluated["results"]["tau"] = 1.5.into();
    fs::write(&path, evaluated.to_string()).unwrap();
    lost();
    let export = second.join("checkpoints/export");
    let drafter = fs::read(export.join("model.safetensors")).unwrap();
    fs::remove_dir_all(&export).unwrap();
    assert_eq!(train(&place, &auto), second);
    assert_eq!(fs::read(export.join("model.safetensors")).unwrap(), drafter);
    assert_eq!((&manifest(&second)["state"], &manifest(&second)["attempt"]), (&"finished".into(), &1.into()));
    assert_eq!(manifest(&second)["results"]["tau"], 1.5, "the same drafter");
    let again = ["train", "--resume", second.to_str().unwrap()];
    assert!(place.fails(2, &again).contains("has made all its 12 steps"));
    lost();
    let longer = train(&place, &["tiny.toml", "--resume", "auto", "--steps", "14"]);
    assert_eq!(longer, second);
    assert_eq!(steps(&second), ["export", "step-000012", "step-000014"]);
    assert_eq!(manifest(&second)["results"].get("tau"), None, "another drafter");
    assert!(place.fails(2, &["train", "--resume", "auto"]).contains("needs a configuration"));
}
