//! Evaluations while a training goes on: they tell, and they change nothing.

use super::resume::{cut, figures, state, train};
use super::tiny::Place;
use serde_json::Value;
use std::fs;
use std::path::Path;

fn place() -> Place {
    let place = Place::new();
    let config = fs::read_to_string(place.config()).unwrap().replace("\"memory\"", "\"off\"");
    fs::write(place.config(), config + "[checkpoint]\nevery = 4\nkeep = 0\n").unwrap();
    place.ok(&["prepare", "tiny.toml"]);
    place
}

fn json(path: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// Step and acceptance length of every row of metrics.csv; each has a loss.
fn rows(run: &Path) -> Vec<(String, Option<f64>)> {
    let text = fs::read_to_string(run.join("metrics.csv")).unwrap();
    assert!(text.lines().skip(1).all(|line| line.split(',').nth(4).unwrap().parse::<f64>().is_ok()), "{text}");
    let tau = text.lines().next().unwrap().split(',').position(|name| name == "acceptance_length").unwrap();
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        (fields[2].to_owned(), fields[tau].parse().ok())
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn a_training_that_is_evaluated_is_the_same_bit_for_bit() {
    let place = place();
    let plain = train(&place, &["tiny.toml"]);
    let run = train(&place, &["tiny.toml", "--set", "eval.every=4"]);
    for step in ["step-000004", "step-000008", "step-000012"] {
        assert_eq!(state(&plain.join("checkpoints").join(step)), state(&run.join("checkpoints").join(step)), "{step}");
    }
    // Rows of figures at 5, 10 and 12; the last one is evaluated too.
    let rows = rows(&run);
    let steps: Vec<&str> = rows.iter().map(|(step, _)| step.as_str()).collect();
    assert_eq!(steps, ["4", "5", "8", "10", "12"]);
    assert!(rows.iter().all(|(step, tau)| tau.is_some() == ["4", "8", "12"].contains(&step.as_str())), "{rows:?}");

    // The figures are those that an evaluation of the checkpoint gives.
    let checkpoint = run.join("checkpoints/step-000008");
    let noted = json(&checkpoint.join("eval.json"));
    let again = place.ok(&["eval", checkpoint.to_str().unwrap(), "--control-prompts", "0", "--json"]);
    let again: Value = serde_json::from_str(&again).unwrap();
    assert_eq!((&noted["tau"], noted["prompts"].as_u64()), (&again["trained"]["tau"], Some(3)));
    assert_eq!(noted["evaluation"]["trained"]["histogram"], again["trained"]["histogram"]);
    assert_eq!(json(&run.join("run.json"))["results"]["tau"].as_f64(), rows[4].1);
    assert_eq!(json(&run.join("checkpoints/step-000012/eval.json"))["tau"].as_f64(), rows[4].1);
    place.ok(&["export", run.to_str().unwrap(), "--best", "-o", "best"]);

    says_so(&place, &run, rows[4].1.unwrap());
    // As long as nobody has evaluated what a later attempt has learnt, nothing is known of it.
    train(&place, &["--resume", run.to_str().unwrap(), "--steps", "13", "--set", "eval.every=0"]);
    assert_eq!(json(&run.join("run.json"))["results"].get("tau"), None);
    cut(&run, 4);
    let resumed = train(&place, &["--resume", run.to_str().unwrap(), "--steps", "12", "--set", "eval.every=4"]);
    let last = resumed.join("checkpoints/step-000012");
    assert_eq!(
        (state(&last), figures(&last)["attempt"].as_u64()),
        (state(&plain.join("checkpoints/step-000012")), Some(3))
    );
}

/// In the timeline, in the report's goodput, on the screen, and for TensorBoard.
fn says_so(place: &Place, run: &Path, tau: f64) {
    let run = run.to_str().unwrap();
    assert!(place.ok(&["dump", run]).contains("evaluation: step 8, tau "));
    let report = place.ok(&["report", run]);
    let eval = report.lines().find(|line| line.trim_start().starts_with("eval ")).unwrap_or_else(|| panic!("{report}"));
    assert!(!eval.contains(" 0.0 %"), "{eval}");
    let top = place.ok(&["top", run, "--once"]);
    assert!(top.contains(&format!("tau {tau:.2} ")), "{top}");
    let events = fs::read_dir(place.path(run).join("tensorboard")).unwrap().next().unwrap().unwrap().path();
    assert!(fs::read(events).unwrap().windows(14).any(|tag| tag == b"acceptance/tau"));
}

#[test]
fn of_several_drafters_one_evaluates_and_the_others_wait_for_it() {
    let place = place();
    let two = |config: String| config.replace("[pipeline]", "[pipeline]\ndrafter_devices = [\"cpu\", \"cpu\"]");
    fs::write(place.config(), two(fs::read_to_string(place.config()).unwrap()).replace("batch = 2", "batch = 1"))
        .unwrap();
    let plain = train(&place, &["tiny.toml", "--steps", "8"]);
    let run = train(&place, &["tiny.toml", "--steps", "8", "--set", "eval.every=5", "--set", "eval.prompts=2"]);
    assert_eq!(state(&plain.join("checkpoints/step-000008")), state(&run.join("checkpoints/step-000008")));
    let sums = place.sums(run.to_str().unwrap());
    let spent = |lane: &str, stage: &str| sums.get(&(lane.to_owned(), stage.to_owned())).copied().unwrap_or(0);
    assert!(spent("drafter:0", "drafter.eval") > 0 && spent("drafter:1", "drafter.eval") == 0);
    assert!(spent("drafter:1", "sync.eval") > 0);
    let iterations = fs::read_to_string(run.join("iterations.csv")).unwrap();
    let passes = |lane: &str| {
        let total = |line: &&str| line.contains(&format!(",{lane},")) && line.contains(",eval,total,");
        iterations.lines().filter(total).count()
    };
    assert_eq!((passes("drafter:0"), passes("drafter:1")), (2, 2), "after step 5 and after the last one");
}

#[test]
fn attention_is_as_the_configuration_says_and_what_cannot_serve_is_refused() {
    let place = place();
    let run = train(&place, &["tiny.toml", "--steps", "2"]);
    let config = fs::read_to_string(place.config()).unwrap();
    let with = |word: &str| {
        let config = config.replace("[train]", &format!("[train]\nattention = \"{word}\""));
        fs::write(place.path("other.toml"), config).unwrap();
        ["eval", run.to_str().unwrap(), "--config", "other.toml", "--control-prompts", "0", "--json"]
    };
    let found = ["own", "auto", "math"].map(|word| {
        let told: Value = serde_json::from_str(&place.ok(&with(word))).unwrap();
        ["tau", "histogram", "tokens", "equal"].map(|name| told["trained"][name].clone())
    });
    assert!(found[0] == found[1] && found[0] == found[2], "a CPU has one way: {found:?}");
    for word in ["cudnn", "flash", "efficient"] {
        let refused = place.fails(2, &with(word));
        let want = format!("[train] attention = \"{word}\": no device is a GPU; take \"own\", \"auto\" or \"math\"");
        assert!(refused.contains(&want), "{refused}");
    }
}
