//! Rows of every kind become samples; nothing is lost on the way, and an interrupted preparation goes on.

use super::tiny::Place;
use serde_json::json;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

/// A file has grown beyond its limit (Linux).
const SIGXFSZ: i32 = 25;

/// A place whose configuration has these keys in [data], instead of its own or besides.
fn place(data: &str) -> Place {
    let place = Place::new();
    let config = fs::read_to_string(place.config()).unwrap();
    let key = |line: &str| line.split_once(" = ").map(|(key, _)| key.to_owned());
    let given: Vec<_> = data.lines().filter_map(key).collect();
    let kept: Vec<&str> = config.lines().filter(|line| key(line).is_none_or(|key| !given.contains(&key))).collect();
    fs::write(place.config(), kept.join("\n").replace("[data]", &format!("[data]\n{data}"))).unwrap();
    place
}

fn write_rows(place: &Place, rows: &[serde_json::Value]) {
    let lines: Vec<String> = rows.iter().map(ToString::to_string).collect();
    fs::write(place.path("train.jsonl"), lines.join("\n")).unwrap();
}

fn turns(contents: &[(&str, &str)]) -> serde_json::Value {
    contents.iter().map(|(role, content)| json!({"role": role, "content": content})).collect()
}

/// The shards' bytes.
fn shards(place: &Place) -> Vec<u8> {
    let mut names: Vec<_> = fs::read_dir(place.path("shards")).unwrap().map(|e| e.unwrap().path()).collect();
    names.retain(|name| name.extension().is_some_and(|e| e == "safetensors"));
    names.sort();
    assert!(!names.is_empty());
    names.iter().flat_map(|name| fs::read(name).unwrap()).collect()
}

#[test]
fn every_row_is_accounted_for() {
    let place = place("max_prompt_tokens = 60");
    write_rows(
        &place,
        &[
            json!({"messages": turns(&[("user", "What is one?")])}),
            json!({"messages": turns(&[("user", "What is one?"), ("assistant", "One is a number, the first of all.")])}),
            json!({"id": "text", "text": "Plain text, every token of which is supervised. "}),
            json!({"id": "ids", "input_ids": (20..40).collect::<Vec<_>>()}),
            json!({"id": "beyond", "input_ids": [7, 49152]}),
            json!({"id": "long", "messages": turns(&[("user", &"word ".repeat(100))])}),
        ],
    );
    let told = place.ok(&["prepare", "tiny.toml"]);
    let rows = told.lines().nth(1).unwrap();
    assert_eq!(
        rows,
        "6 rows: 4 made samples, 1 prompts too long or empty, 1 failed (the first: row \"beyond\": token id 49152, but \
         the model's vocab_size is 49152)"
    );
    assert!(told.lines().nth(2).unwrap().starts_with("4 kept (0 of them cut)"), "{told}");
}

#[test]
fn a_kernel_of_attention_that_the_target_cannot_have_is_refused_before_the_first_prompt() {
    let place = Place::new();
    let config = fs::read_to_string(place.config()).unwrap();
    fs::write(place.config(), config.replace("[train]\n", "[train]\nattention = \"cudnn\"\n")).unwrap();
    let told = place.fails(2, &["prepare", "tiny.toml"]);
    assert!(told.contains("[train] attention = \"cudnn\": no device is a GPU; take \"own\", \"auto\""), "{told}");
    assert!(!place.path("shards").exists(), "nothing was begun");
}

#[test]
fn the_target_answers_every_turn_anew_and_an_interruption_changes_nothing() {
    let rows: Vec<_> = (0..6)
        .map(|i| {
            let question = format!("What is {i}?");
            json!({"messages": turns(&[("user", &question), ("assistant", "Old."), ("user", "And?"), ("assistant", "Old.")])})
        })
        .collect();
    let keys = "regenerate = \"all\"\ntemperature = 0.8\ngenerate_batch = 1\nmax_new_tokens = 24\nmin_loss_tokens = 2";
    let straight = place(keys);
    write_rows(&straight, &rows);
    assert!(straight.ok(&["prepare", "tiny.toml"]).contains("6 rows: 6 made samples"));

    let killed = place(keys);
    write_rows(&killed, &rows);
    // Answers come too fast for a busy machine to be quick enough: the system kills it, once a file holds 1 kB.
    let script = "ulimit -c 0 -f 1; exec \"$0\" prepare tiny.toml";
    let mut command = Command::new("env");
    command.args(["--default-signal=XFSZ", "bash", "-c", script, env!("CARGO_BIN_EXE_dflash")]);
    let ended = command.current_dir(killed.path(".")).stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
    assert_eq!(ended.signal(), Some(SIGXFSZ), "{ended}");
    let answers = || {
        let entries = fs::read_dir(killed.path(".")).unwrap().map(|e| e.unwrap().path());
        let file = entries.into_iter().find(|p| p.to_string_lossy().contains("shards.answers-"))?;
        Some(fs::read_to_string(file).unwrap().lines().filter(|l| !l.is_empty()).count())
    };
    assert!(answers().is_some_and(|n| (2..12).contains(&n)), "{:?}", answers());
    let told = killed.ok(&["prepare", "tiny.toml"]);
    assert!(told.contains("answers were there from an interrupted preparation"), "{told}");
    assert_eq!(shards(&killed), shards(&straight));
    assert!(answers().is_none(), "the answers are in the shards");
}

#[test]
fn last_turn_alone_may_be_supervised() {
    let supervised = |keys: &str| {
        let place = place(keys);
        let turn = ("assistant", "An answer of some length, so that it is kept.");
        write_rows(&place, &[json!({"messages": turns(&[("user", "Q"), turn, ("user", "R"), turn])})]);
        let told = place.ok(&["prepare", "tiny.toml"]);
        let words: Vec<&str> = told.split_whitespace().collect();
        let at = words.iter().position(|w| *w == "of").unwrap();
        words[at - 1].parse::<usize>().unwrap()
    };
    assert_eq!(supervised(""), 2 * supervised("supervise = \"last_turn\""));
}
