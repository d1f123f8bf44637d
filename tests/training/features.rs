//! Hidden states that are kept on the disk.

use super::resume::{state, train};
use super::tiny::Place;
use std::fs;
use std::path::{Path, PathBuf};

fn last(run: &Path) -> Vec<(String, Vec<u8>)> {
    state(&run.join("checkpoints/step-000012"))
}

fn cached(place: &Place, how: &str, more: &[&str]) -> PathBuf {
    let how = format!("pipeline.feature_cache={how}");
    train(place, &[&["tiny.toml", "--set", &how], more].concat())
}

/// The folders of hidden states.
fn folders(place: &Place) -> Vec<PathBuf> {
    fs::read_dir(place.path("shards.states")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn states_from_the_disk_train_as_those_from_memory() {
    let place = Place::new();
    place.ok(&["prepare", "tiny.toml"]);
    let memory = last(&cached(&place, "memory", &[]));
    // Interrupted after a part of the first epoch, and filled by the next one.
    cached(&place, "disk", &["--steps", "2"]);
    let again = place.dflash(&["train", "tiny.toml", "--set", "pipeline.feature_cache=disk"]);
    let told = String::from_utf8(again.stderr).unwrap();
    let part = told.lines().find(|line| line.starts_with("hidden states: ")).unwrap();
    assert!(part.contains(" of 10 rows are in ") && !part.contains(": 10 of") && !part.contains(": 0 of"), "{part}");
    let run = place.path(String::from_utf8(again.stdout).unwrap().trim());
    assert_eq!(last(&run), memory);
    let full = place.dflash(&["train", "tiny.toml", "--set", "pipeline.feature_cache=disk"]);
    assert!(String::from_utf8(full.stderr).unwrap().contains("hidden states: 10 of 10 rows are in "));
    assert_eq!(last(&place.path(String::from_utf8(full.stdout).unwrap().trim())), memory);
    assert_eq!(folders(&place).len(), 1);

    // Other taps are other states.
    cached(&place, "disk", &["--set", "drafter.target_layer_ids=[0, 2]", "--steps", "1"]);
    assert_eq!(folders(&place).len(), 2);
}

/// A row alone is read in the same way whenever it is read: then nothing at all may differ.
#[test]
fn states_from_the_disk_are_those_that_the_target_would_make() {
    let place = Place::new();
    let config = fs::read_to_string(place.config()).unwrap().replace("batch = 2", "batch = 1");
    fs::write(place.config(), config).unwrap();
    place.ok(&["prepare", "tiny.toml"]);
    assert_eq!(last(&cached(&place, "disk", &[])), last(&cached(&place, "off", &[])), "12 steps, 10 of them an epoch");
}

#[test]
fn damaged_states_are_named_and_never_trained_on() {
    let place = Place::new();
    place.ok(&["prepare", "tiny.toml"]);
    cached(&place, "disk", &[]);
    let states = folders(&place)[0].join("states.bin");
    let whole = fs::read(&states).unwrap();
    let resume = ["train", "tiny.toml", "--set", "pipeline.feature_cache=disk"];
    let flipped: Vec<u8> = whole.iter().map(|byte| byte ^ 1).collect();
    fs::write(&states, flipped).unwrap();
    let told = place.fails(4, &resume);
    assert!(told.contains("loader failed: ") && told.contains("states.bin is damaged (row "), "{told}");
    fs::write(&states, &whole[..whole.len() / 2]).unwrap();
    let told = place.fails(2, &resume);
    assert!(told.contains("states.bin is damaged (it has ") && told.contains("; remove "), "{told}");
    fs::remove_dir_all(&folders(&place)[0]).unwrap();
    place.ok(&resume);
}
