//! A training that goes on from a checkpoint learns what it would have learnt at once.

use super::super::tiny::Place;
use super::{cut, figures, state, steps, train};
use std::fs;

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
fn so_is_one_whose_hidden_states_are_on_the_disk() {
    resumes_exactly(&[("\"off\"", "\"disk\"")]);
}
