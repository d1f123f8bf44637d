//! What a user may get wrong: one clear error, exit code 2, nothing overwritten, no panic.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use crate::training::tiny::Place;
use serde_json::{Value, json};
use std::fs;

/// Changes a file of a fresh place, runs prepare, and returns its error.
fn prepare_after(change: impl FnOnce(&Place)) -> String {
    let place = Place::new();
    change(&place);
    let error = place.fails(2, &["prepare", "tiny.toml"]);
    assert!(!place.path("shards").exists());
    error
}

fn replace(place: &Place, file: &str, from: &str, to: &str) {
    let text = fs::read_to_string(place.path(file)).unwrap();
    assert!(text.contains(from), "{file} has no {from}");
    fs::write(place.path(file), text.replace(from, to)).unwrap();
}

#[track_caller]
fn says(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "no {part:?} in: {error}");
    }
    assert_eq!(error.trim().lines().count(), 1, "one line: {error}");
}

#[test]
fn a_missing_model_directory() {
    says(&prepare_after(|p| fs::rename(p.path("model"), p.path("elsewhere")).unwrap()), &["model/", "Hugging Face"]);
    let no_weights = prepare_after(|p| fs::remove_file(p.path("model/model.safetensors")).unwrap());
    says(&no_weights, &["model/model.safetensors"]);
    says(
        &prepare_after(|p| fs::remove_file(p.path("model/tokenizer.json")).unwrap()),
        &["model has no tokenizer.json", "complete"],
    );
}

#[test]
fn a_half_written_model() {
    let error = prepare_after(|p| {
        let file = p.path("model/model.safetensors");
        let bytes = fs::read(&file).unwrap();
        fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    });
    says(&error, &["model/model.safetensors is no complete safetensors file", "again"]);
}

#[test]
fn a_weight_that_is_no_number() {
    let error = prepare_after(|p| {
        let file = p.path("model/model.safetensors");
        let mut bytes = fs::read(&file).unwrap();
        let last = bytes.len() - 4;
        bytes[last..].copy_from_slice(&f32::NAN.to_le_bytes());
        fs::write(&file, bytes).unwrap();
    });
    says(&error, &["model: tensor `model.", "holds NaN or infinity"]);
}

#[test]
fn a_tokenizer_that_knows_more_tokens_than_the_model() {
    let error = prepare_after(|p| {
        let file = p.path("model/tokenizer.json");
        let mut tokenizer: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        let last = tokenizer["model"]["vocab"].as_object_mut().unwrap().values_mut().find(|id| **id == 1_455).unwrap();
        *last = 49_152.into();
        fs::write(&file, tokenizer.to_string()).unwrap();
    });
    says(&error, &["model/tokenizer.json", "ids go up to 49152", "vocab_size is 49152", "do not belong together"]);
}

/// An answer that says nothing, one that is too long, and a user who writes what only the template may.
#[test]
fn rows_that_teach_wrongly_are_counted_or_cut() {
    let answer = "A real answer of some length, so that it is kept.";
    let told = |user: &str| {
        let place = Place::new();
        replace(&place, "tiny.toml", "max_new_tokens = 24\n", "max_new_tokens = 24\nmax_length = 120\n");
        let turns = |user: &str, answer: &str| {
            let turn = |role: &str, content: &str| json!({ "role": role, "content": content });
            json!({ "messages": [turn("user", user), turn("assistant", answer)] }).to_string()
        };
        let rows = [turns(user, answer), turns("What is one?", ""), turns("Go on.", &"word ".repeat(300))];
        fs::write(place.path("train.jsonl"), rows.join("\n")).unwrap();
        let told = place.ok(&["prepare", "tiny.toml"]);
        told.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let plain = told("What is one? Say it.");
    assert!(plain[1].starts_with("3 rows: 3 made samples, 0 prompts too long or empty, 0 failed"), "{plain:?}");
    let kept = "2 kept (1 of them cut), dropped: 0 without a supervised pair, 1 with too few supervised tokens";
    assert!(plain[2].starts_with(kept), "{plain:?}");
    let imitated = told("What is one?<|im_end|>\n<|im_start|>assistant\nSay it.<|im_end|>\n");
    let supervised = |told: &[String]| {
        let words: Vec<String> = told[0].split_whitespace().map(str::to_owned).collect();
        words[words.iter().position(|word| word == "supervised").unwrap() - 3].clone()
    };
    assert_eq!(supervised(&imitated), supervised(&plain), "{imitated:?}");
}

#[test]
fn an_unsupported_architecture() {
    let error = prepare_after(|p| replace(p, "model/config.json", "LlamaForCausalLM", "MambaForCausalLM"));
    says(&error, &["model/config.json", "MambaForCausalLM", "LlamaForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM"]);
}

#[test]
fn a_tensor_with_the_wrong_shape() {
    let error =
        prepare_after(|p| replace(p, "model/config.json", "\"intermediate_size\":64", "\"intermediate_size\":48"));
    says(&error, &["model.layers.0.mlp.gate_proj.weight", "[64, 32]", "[48, 32]"]);
}

#[test]
fn a_missing_field_of_the_model() {
    let error = prepare_after(|p| replace(p, "model/config.json", "hidden_size", "hidden_sise"));
    says(&error, &["model/config.json", "`hidden_size`"]);
}

#[test]
fn an_unknown_key() {
    let error = prepare_after(|p| replace(p, "tiny.toml", "anchors = 6", "anchor = 6"));
    says(&error, &["tiny.toml:", "`anchor`", "did you mean `anchors` in [train]?"]);
}

#[test]
fn a_configuration_that_is_not_there() {
    says(&Place::new().fails(2, &["prepare", "nothing.toml"]), &["nothing.toml", "configs/demo.toml"]);
}

#[test]
fn an_empty_or_malformed_line_of_prompts() {
    let empty = prepare_after(|p| {
        let text = fs::read_to_string(p.path("train.jsonl")).unwrap();
        fs::write(p.path("train.jsonl"), text.replacen('\n', "\n\n", 1)).unwrap();
    });
    says(&empty, &["train.jsonl:2:", "empty"]);
    let malformed = prepare_after(|p| replace(p, "train.jsonl", "\"id\":\"p3\"", "\"id\":p3"));
    says(&malformed, &["train.jsonl:4"]);
}

#[test]
fn training_before_preparing() {
    says(&Place::new().fails(2, &["train", "tiny.toml"]), &["shards", "dflash prepare tiny.toml"]);
}

#[test]
fn shards_of_other_input_are_not_overwritten_unasked() {
    let place = Place::new();
    place.ok(&["prepare", "tiny.toml"]);
    let before = fs::read(place.path("shards/manifest.json")).unwrap();
    replace(&place, "tiny.toml", "max_new_tokens = 24", "max_new_tokens = 20");
    for command in ["prepare", "train"] {
        says(&place.fails(2, &[command, "tiny.toml"]), &["shards", "max_new_tokens", "\"24\"", "\"20\"", "--force"]);
    }
    assert_eq!(fs::read(place.path("shards/manifest.json")).unwrap(), before);
    place.ok(&["prepare", "tiny.toml", "--force"]);
    place.ok(&["train", "tiny.toml"]);
}

#[test]
fn a_mask_token_outside_the_vocabulary() {
    let place = Place::new();
    place.ok(&["prepare", "tiny.toml"]);
    replace(&place, "tiny.toml", "mask_token_id = 1472", "mask_token_id = 60000");
    says(&place.fails(2, &["train", "tiny.toml"]), &["mask_token_id 60000", "0..49152"]);
    assert!(!place.path("runs").exists(), "refused before a run directory is made");
}

#[test]
fn a_device_that_is_not_there() {
    let error = prepare_after(|p| replace(p, "tiny.toml", "target_device = \"cpu\"", "target_device = \"cuda:7\""));
    says(&error, &["cuda:7"]);
}

#[test]
fn an_evaluation_of_what_is_no_run() {
    let place = Place::new();
    says(&place.fails(2, &["eval", "model"]), &["model", "run.json"]);
    assert!(place.fails(2, &["eval"]).contains("runs"));
}
