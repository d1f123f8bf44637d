//! What they learn, and who sees it.

use super::super::resume::state;
use super::super::tiny::Place;
use super::{Crowd, checkpoint, column, place, single};
use std::fs;
use std::path::Path;

#[test]
fn two_processes_learn_what_one_learns_with_twice_the_batch() {
    let place = place();
    let run = Crowd::start(&place, [&["ranks.toml"], &["ranks.toml"]]).ends_well();
    let run = place.path(run.to_str().unwrap());
    // One drafter with twice the batch: the same but for rounding.
    let twice = single(&place, &["tiny.toml"]);
    same_but_for_rounding(&run, &twice);
    // Two drafters of one process: the same additions, and so the same bits.
    let two = single(&place, &["two.toml"]);
    assert_eq!(state(&checkpoint(&run, 12)), state(&checkpoint(&two, 12)));
    // And while the backward pass still goes on: the same again.
    let meanwhile = ["ranks.toml", "--set", "pipeline.reduce_overlap=true", "--name", "meanwhile"];
    let meanwhile = Crowd::start(&place, [&meanwhile, &meanwhile]).ends_well();
    assert_eq!(state(&checkpoint(&place.path(meanwhile.to_str().unwrap()), 12)), state(&checkpoint(&two, 12)));
    is_seen_by_all_readers(&place, run.to_str().unwrap());
}

#[test]
fn drafters_of_two_processes_learn_as_those_of_one() {
    let place = place();
    let run = Crowd::start(&place, [&["two.toml"], &["two.toml"]]).ends_well();
    same_but_for_rounding(&place.path(run.to_str().unwrap()), &single(&place, &["four.toml"]));
}

fn same_but_for_rounding(run: &Path, other: &Path) {
    for name in ["loss", "gradient_norm", "accuracy"] {
        let (own, other) = (column(run, name), column(other, name));
        assert_eq!((own.len(), other.len()), (3, 3), "{name}");
        for (own, other) in own.iter().zip(&other) {
            assert!((own - other).abs() <= 1e-4 * other.abs(), "{name}: {own} and {other}");
        }
    }
}

/// Both ranks are in the timeline, in the table, on the screen; and how far their clocks are apart.
fn is_seen_by_all_readers(place: &Place, run: &str) {
    let files = fs::read_dir(Path::new(run).join("timeline")).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    assert!(["rank0-", "rank1-"].iter().all(|rank| names.iter().any(|name| name.starts_with(rank))), "{names:?}");
    let csv = place.ok(&["report", run, "--format", "csv"]);
    let rows = |rank: &str| csv.lines().filter(|line| line.split(',').any(|field| field == rank)).count();
    assert!(rows("0") > 0 && rows("1") > 0, "{csv}");
    let report = place.ok(&["report", run]);
    assert!(!report.contains("torn") && report.contains("drafter.reduce"), "{report}");
    let top = place.ok(&["top", run, "--once"]);
    assert!(top.matches("drafter:0").count() >= 2, "{top}");
    let dump = place.ok(&["dump", run]);
    assert!(dump.contains("clock.offset") && dump.contains("clock.uncertainty"), "{dump}");
}

#[test]
fn rank_0_evaluates_for_all_and_each_rank_keeps_its_own_hidden_states() {
    let place = place();
    let config = fs::read_to_string(place.path("ranks.toml")).unwrap();
    let config = config.replace("[eval]", "[eval]\nevery = 3").replace("\"memory\"", "\"disk\"");
    fs::write(place.path("ranks.toml"), config).unwrap();
    let steps = ["ranks.toml", "--steps", "4"];
    let run = place.path(Crowd::start(&place, [&steps, &steps]).ends_well().to_str().unwrap());
    let metrics = fs::read_to_string(run.join("metrics.csv")).unwrap();
    let at = metrics.lines().next().unwrap().split(',').position(|column| column == "acceptance_length").unwrap();
    let told: Vec<_> = metrics.lines().skip(1).map(|line| line.split(',').nth(at).unwrap()).collect();
    assert_eq!(told.iter().filter(|tau| !tau.is_empty()).count(), 2, "after step 3 and at the end: {metrics}");
    let dump = place.ok(&["dump", run.to_str().unwrap()]);
    assert!(dump.contains("sync.eval"), "rank 1 waits for it");
    // It reads again what it has read.
    Crowd::start(&place, [&steps, &steps]).ends_well();
}
