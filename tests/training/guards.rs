//! What would be learnt wrong in silence, said before the first step.

use super::tiny::Place;
use std::fs;

#[test]
fn doctor_runs_the_guards_and_names_the_one_that_found_something() {
    let place = Place::new();
    place.ok(&["prepare", "tiny.toml"]);
    let asked = |id: &str| {
        ["doctor", "model", "shards", "--block-size", "4", "--layers", "2", "--mask-token-id", id].map(str::to_owned)
    };
    let words = asked("1472");
    let fine = place.ok(&words.each_ref().map(String::as_str));
    for guard in ["tap_ids", "mask_id", "head", "data", "taps", "future", "anchor_state", "context", "documents"] {
        assert!(fine.lines().any(|line| line.starts_with(guard) && line.ends_with(" fine")), "{guard}: {fine}");
    }
    // Every conversation has <|im_start|>.
    let words = asked("1457");
    let output = place.dflash(&words.each_ref().map(String::as_str));
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("mask_id      the training texts contain token 1457:"), "{text}");
}

#[test]
fn a_training_whose_mask_token_is_in_its_texts_does_not_begin() {
    let place = Place::new();
    let text = fs::read_to_string(place.config()).unwrap();
    fs::write(place.config(), text.replace("mask_token_id = 1472", "mask_token_id = 1457")).unwrap();
    place.ok(&["prepare", "tiny.toml"]);
    let error = place.fails(2, &["train", "tiny.toml"]);
    assert!(error.contains("guard `mask_id`: the training texts contain token 1457"), "{error}");
    assert!(!place.path("runs").exists(), "nothing was written");
}

/// The keys that change how a step is made, all at once: it must train.
#[test]
fn every_switch_of_a_step_goes_through_the_pipeline() {
    let place = Place::new();
    let text = fs::read_to_string(place.config()).unwrap();
    let drafter = "mask_token_id = 1472\nlayer_types = [\"sliding_attention\", \"full_attention\"]\nsliding_window = 9\n\
                   split_fc = true\nmask = \"dense\"\n";
    let train = "[train]\nloss = \"kl\"\nnoise = \"cosine\"\nnoise_kind = \"gaussian\"\naccumulate = 2\ncheckpointing = true\n\
                 schedule = \"wsd\"\nmin_rate = 0.1\nfixed_anchors = false\nloss_chunk_blocks = 3\n\
                 norm_reading = \"each_step\"\nanchor_rule = \"whole_block\"\n";
    let text = text.replace("mask_token_id = 1472\n", drafter).replace("[train]\n", train);
    fs::write(place.config(), text).unwrap();
    place.ok(&["prepare", "tiny.toml"]);
    let run = place.ok(&["train", "tiny.toml"]).trim().to_owned();
    let metrics = fs::read_to_string(place.path(&run).join("metrics.csv")).unwrap();
    let last = metrics.lines().last().unwrap();
    assert!(last.contains(",12,") && !last.contains("NaN"), "{metrics}");
    assert!(place.ok(&["eval", &run]).contains("equal 3, near-tie 0, wrong 0 of 3"));
}
