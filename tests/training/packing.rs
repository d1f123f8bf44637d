//! Several samples in a row: nothing of one reaches another, and the two ways to number them give the same training.

use super::tiny::Place;
use std::fs;

/// Losses and accuracies of a run with these keys in [data] and [train].
fn trained(place: &Place, data: &str, train: &str) -> Vec<String> {
    let config = fs::read_to_string(place.config()).unwrap();
    let config = config.replace("[data]", &format!("[data]\n{data}")).replace("[train]", &format!("[train]\n{train}"));
    let config = config.replace("feature_cache = \"memory\"", "feature_cache = \"off\"");
    fs::write(place.path("packed.toml"), config).unwrap();
    let run = place.ok(&["train", "packed.toml"]).trim().to_owned();
    let metrics = fs::read_to_string(place.path(&run).join("metrics.csv")).unwrap();
    metrics.lines().skip(1).map(|line| line.split(',').nth(4).unwrap().to_owned()).collect()
}

#[test]
fn packed_rows_are_numbered_alike_either_way_and_train() {
    let place = Place::new();
    place.ok(&["prepare", "tiny.toml"]);
    let fast = trained(&place, "pack = 400", "");
    assert_eq!(fast.len(), 3, "steps 5, 10 and 12");
    assert_eq!(fast, trained(&place, "pack = 400\ndocument_ids = \"reference\"", ""));
    assert_ne!(fast, trained(&place, "", ""));
    let guarded = place.fails(2, &["train", "packed.toml", "--steps", "0"]);
    assert!(guarded.contains("[train] steps"), "{guarded}");
}
