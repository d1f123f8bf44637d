//! What is refused before anything is begun, and what need not be there.

use super::{Crowd, place, single};
use std::fs;
use std::process::Command;

#[test]
fn nccl_without_gpus_is_refused_at_once_by_its_own_words() {
    let place = place();
    let nccl = ["ranks.toml", "--set", "pipeline.reduce=nccl", "--set", "pipeline.silence_seconds=3600"];
    let mut crowd = Crowd::start(&place, [&nccl, &nccl]);
    // Long before anybody's silence is over. Who hears of the other's end before its own says that.
    let codes = [0, 1].map(|rank| crowd.code(rank));
    assert!(codes.contains(&Some(2)) && codes.iter().all(|code| matches!(code, Some(2 | 4))), "{codes:?}");
    for rank in [0, 1] {
        let said = crowd.said(rank);
        assert!(said.contains("reduce = \"nccl\": rank 0 trains on a CPU") && !said.contains("no rank says"), "{said}");
    }
}

#[test]
fn ranks_that_were_started_differently_are_refused() {
    let place = place();
    let mut crowd = Crowd::start(&place, [&["ranks.toml"], &["ranks.toml", "--seed", "7"]]);
    for rank in [0, 1] {
        assert_eq!(crowd.code(rank), Some(2), "{}", crowd.said(rank));
        let said = crowd.said(rank);
        assert!(said.contains("run.seed is 0 at rank 0 and 7 at rank 1"), "{said}");
    }
    assert!(!place.path("runs").exists(), "nothing was begun");
    let lacking = Command::new(env!("CARGO_BIN_EXE_dflash"))
        .args(["train", "ranks.toml"])
        .current_dir(place.path("."))
        .env("WORLD_SIZE", "2")
        .env_remove("RANK")
        .output()
        .unwrap();
    let said = String::from_utf8(lacking.stderr).unwrap();
    assert!(lacking.status.code() == Some(2) && said.contains("RANK is not set"), "{said}");
}

#[test]
fn texts_that_differ_are_refused_and_nothing_is_left() {
    let place = place();
    let config = fs::read_to_string(place.path("ranks.toml")).unwrap().replace("\"memory\"", "\"disk\"");
    fs::write(place.path("ranks.toml"), &config).unwrap();
    let prompts = fs::read_to_string(place.path("train.jsonl")).unwrap();
    let fewer: Vec<&str> = prompts.lines().skip(1).collect();
    fs::write(place.path("fewer.jsonl"), fewer.join("\n")).unwrap();
    let other = config.replace("train.jsonl", "fewer.jsonl").replace("shards = \"", "shards = \"other-");
    fs::write(place.path("other.toml"), other).unwrap();
    place.ok(&["prepare", "other.toml"]);
    let names = || {
        let entries = fs::read_dir(place.path(".")).unwrap().map(|entry| entry.unwrap().file_name());
        entries.filter(|name| !name.to_string_lossy().starts_with("rank")).collect::<std::collections::BTreeSet<_>>()
    };
    let before = names();
    let mut crowd = Crowd::start(&place, [&["ranks.toml"], &["other.toml"]]);
    for rank in [0, 1] {
        assert_eq!(crowd.code(rank), Some(2), "{}", crowd.said(rank));
        assert!(crowd.said(rank).contains("prepared from "), "{}", crowd.said(rank));
    }
    assert_eq!(names(), before, "no run, and no hidden states");
}

#[test]
fn a_rank_that_was_not_told_of_resume_needs_nothing_of_the_first_attempt() {
    let place = place();
    let given = single(&place, &["tiny.toml", "--steps", "2"]).join("checkpoints/export");
    let config = fs::read_to_string(place.path("ranks.toml")).unwrap();
    let config = config.replace("[drafter]", &format!("[drafter]\ninit = {:?}", given.to_str().unwrap()));
    fs::write(place.path("ranks.toml"), config).unwrap();
    let begin = ["ranks.toml", "--steps", "5"];
    let run = Crowd::start(&place, [&begin, &begin]).ends_well();
    fs::remove_dir_all(given).unwrap();
    let run = place.path(run.to_str().unwrap());
    let further = ["ranks.toml", "--steps", "7", "--resume", run.to_str().unwrap()];
    assert_eq!(Crowd::start(&place, [&further, &further[..3]]).ends_well(), run);
}
