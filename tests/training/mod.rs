//! prepare, train, eval and every reading command, on a tiny model, as a user runs them.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod control;
mod evaluating;
mod export;
mod features;
mod guards;
mod hang_up;
mod packing;
mod prepare;
mod ranks;
mod resume;
mod running;
mod sampling;
pub mod tiny;
mod top;

use serde_json::Value;
use std::fs;
use tiny::Place;

#[test]
fn from_prompts_to_a_report() {
    let place = Place::new();
    assert!(place.ok(&["prepare", "tiny.toml"]).starts_with("shards: 10 samples"));
    assert!(place.ok(&["prepare", "tiny.toml"]).contains("were there already"));

    let run = place.ok(&["train", "tiny.toml", "--log-format", "json"]).trim().to_owned();
    let export = place.path(&run).join("checkpoints/export");
    assert!(export.join("model.safetensors").is_file() && export.join("config.json").is_file());
    says_what_ran(&place, &run);
    let metrics = fs::read_to_string(place.path(&run).join("metrics.csv")).unwrap();
    assert_eq!(metrics.lines().count(), 1 + 3, "a header, steps 5, 10 and 12: {metrics}");
    let columns: Vec<&str> = metrics.lines().next().unwrap().split(',').collect();
    let last: Vec<&str> = metrics.lines().last().unwrap().split(',').collect();
    let value = |name: &str| last[columns.iter().position(|column| *column == name).unwrap()].parse::<f64>().unwrap();
    assert!(value("block_acceptance_length") >= 1.0 && value("simulated_acceptance_length") >= 0.0);
    assert_eq!(value("skipped"), 0.0);
    let events = fs::read_dir(place.path(&run).join("tensorboard")).unwrap().next().unwrap().unwrap().path();
    assert!(fs::read(events).unwrap().windows(10).any(|tag| tag == b"train/loss"));

    let evaluation = place.ok(&["eval", &run]);
    assert!(evaluation.lines().last().unwrap().starts_with("tau: untrained 1.00, trained "), "{evaluation}");
    assert!(evaluation.contains("equal 3, near-tie 0, wrong 0 of 3"), "in float32 every token is the target's");

    shares_add_up(&place, &run);
    let svg = place.path("flame.svg");
    place.ok(&["flamegraph", &run, "-o", svg.to_str().unwrap()]);
    let picture = fs::read_to_string(&svg).unwrap();
    for frame in ["drafter.backward", "target.forward", "residue", "drafter.wait"] {
        assert!(picture.contains(frame), "no {frame}");
    }
    assert!(place.fails(2, &["flamegraph", &run, "-o", svg.to_str().unwrap()]).contains("--force"));
    assert!(!place.ok(&["diff", &run, &run]).contains("regressed"));
    assert!(place.ok(&["top", &run, "--once"]).contains("drafter:0"));
    assert!(place.ok(&["runs"]).contains("finished"));
}

/// The commit is the one that the tests were built from, as the program was; on CPUs there is no GPU to name.
fn says_what_ran(place: &Place, run: &str) {
    let manifest: Value = serde_json::from_str(&fs::read_to_string(place.path(run).join("run.json")).unwrap()).unwrap();
    assert_eq!(manifest["commit"].as_str(), option_env!("DFLASH_COMMIT"));
    // Where git knows of one. It may be missing, refuse a clone that is another user's, or know of a clone around this one.
    let mut git = std::process::Command::new("git");
    git.args(["-C", env!("CARGO_MANIFEST_DIR"), "rev-parse", "--show-prefix", "HEAD"]);
    if git.output().is_ok_and(|output| output.status.success() && output.stdout.starts_with(b"\n")) {
        let is_commit = |text: &str| text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(manifest["commit"].as_str().is_some_and(is_commit), "{}", manifest["commit"]);
    }
    assert_eq!((&manifest["gpus"], &manifest["gpu_details"]), (&Value::Array(vec![]), &Value::Array(vec![])));
}

/// Every lane has all its stages, and they and the residue are the whole.
fn shares_add_up(place: &Place, run: &str) {
    let stages = [
        ("loader", vec!["load.read", "load.pack", "load.put"]),
        (
            "target:0",
            vec!["target.wait", "target.upload", "target.forward", "target.pack", "target.copy", "target.put"],
        ),
        (
            "drafter:0",
            vec![
                "drafter.wait",
                "drafter.upload",
                "drafter.anchors",
                "drafter.mask",
                "drafter.forward",
                "drafter.loss",
                "drafter.backward",
                "drafter.clip",
                "drafter.step",
                "sync.metrics",
                "drafter.log",
                "drafter.checkpoint",
            ],
        ),
    ];
    let sums = place.sums(run);
    for (lane, stages) in stages {
        let sum = |stage: &str| sums.get(&(lane.to_owned(), stage.to_owned())).copied();
        let parts: u64 = stages.iter().map(|s| sum(s).unwrap_or_else(|| panic!("{lane} lacks {s}"))).sum();
        assert_eq!(parts + sum("residue").unwrap(), sum("total").unwrap(), "{lane}");
    }
}

#[test]
fn log_lines_say_where_each_lanes_time_goes() {
    let place = Place::new();
    place.ok(&["prepare", "tiny.toml"]);
    let text = place.dflash(&["train", "tiny.toml"]);
    let text = String::from_utf8(text.stderr).unwrap();
    for part in
        ["target:0 iteration 4: wait ", " forward ", "drafter:0 iteration 9: wait ", " backward ", "step 5/12: loss "]
    {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    let json = place.dflash(&["train", "tiny.toml", "--log-format", "json"]);
    let lines: Vec<Value> =
        String::from_utf8(json.stderr).unwrap().lines().filter_map(|l| serde_json::from_str(l).ok()).collect();
    let lane = |name: &str| lines.iter().any(|l| l["lane"]["lane"] == name && l["lane"]["stages"][0]["ms"].is_number());
    assert!(["loader", "target:0", "drafter:0"].into_iter().all(lane), "{lines:?}");
}

#[test]
fn the_same_seed_gives_the_same_losses_and_another_seed_others() {
    let place = Place::new();
    place.ok(&["prepare", "tiny.toml"]);
    let losses = |arguments: &[&str]| {
        let run = place.ok(&[&["train", "tiny.toml"], arguments].concat()).trim().to_owned();
        let metrics = fs::read_to_string(place.path(&run).join("metrics.csv")).unwrap();
        metrics.lines().skip(1).map(|l| l.split(',').nth(4).unwrap().to_owned()).collect::<Vec<_>>()
    };
    let first = losses(&[]);
    assert_eq!(first, losses(&[]));
    assert_ne!(first, losses(&["--seed", "1"]));
}

#[test]
#[cfg(unix)]
fn an_interrupted_training_keeps_what_it_has_learnt() {
    let place = Place::new();
    place.ok(&["prepare", "tiny.toml"]);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_dflash"))
        .args(["train", "tiny.toml", "--steps", "1000000"])
        .current_dir(place.path("."))
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // The first log line says that steps are being made.
    let mut line = String::new();
    let mut stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    while !line.contains("step 5/") {
        line.clear();
        assert!(std::io::BufRead::read_line(&mut stderr, &mut line).unwrap() > 0, "it ended by itself");
    }
    assert!(std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    std::io::copy(&mut stderr, &mut std::io::sink()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(place.ok(&["runs"]).contains("stopped"));
    let run = fs::read_dir(place.path("runs")).unwrap().next().unwrap().unwrap().path();
    assert!(run.join("checkpoints/export/model.safetensors").is_file());
    assert!(!place.ok(&["report", run.to_str().unwrap()]).contains("torn"));
}
