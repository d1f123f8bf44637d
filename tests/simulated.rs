//! A simulated training, as a user runs it: recorded, read, and failing as a real one.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// How long a machine is given to be less loaded.
const PATIENCE: Duration = Duration::from_secs(120);

/// A folder for runs.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn dflash(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_dflash"))
            .args(arguments)
            .current_dir(self.0.path())
            .env_remove("DFLASH_RUNS")
            .env_remove("RUST_BACKTRACE")
            .output()
            .unwrap()
    }

    /// Trains with a shipped configuration, of which a part is replaced.
    fn train(&self, config: &str, change: (&str, &str), steps: &str) -> Output {
        let shipped = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("configs/sim").join(config);
        let text = fs::read_to_string(shipped).unwrap();
        assert!(text.contains(change.0), "{config} has no {}", change.0);
        fs::write(self.0.path().join(config), text.replace(change.0, change.1)).unwrap();
        self.dflash(&["train", config, "--steps", steps])
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_simulation_is_recorded_and_says_who_limits() {
    let begin = Instant::now();
    let (place, report) = loop {
        let (place, report) = trained_and_reported();
        // A machine that does much else may hold up another lane longer.
        if report.contains("drafter:0 limits") {
            break (place, report);
        }
        assert!(begin.elapsed() < PATIENCE, "{report}");
    };
    assert!(report.contains("post:0 on sim:0") && !report.contains("torn"), "{report}");
    let top = place.dflash(&["top", "--once"]);
    assert!(text(&top.stdout).contains("sim:1"), "{}", text(&top.stdout));
}

/// A short training with a shipped configuration, and its report.
fn trained_and_reported() -> (Place, String) {
    let place = Place::new();
    let trained = place.train("one_and_one.toml", ("steps = 400", "steps = 400"), "40");
    assert!(trained.status.success(), "{}", text(&trained.stderr));
    assert!(text(&trained.stderr).contains("40 steps, simulated"));
    let run = place.0.path().join(text(&trained.stdout).trim());
    let metrics = fs::read_to_string(run.join("metrics.csv")).unwrap();
    assert!(metrics.lines().skip(1).all(|line| line.split(',').nth(4) == Some("")), "no loss is known: {metrics}");
    let report = text(&place.dflash(&["report"]).stdout);
    (place, report)
}

/// Drafters that pause for an evaluation limit nothing: whoever waits for room meanwhile is set apart as they are.
#[test]
fn an_evaluation_is_neither_training_nor_waiting() {
    let place = Place::new();
    let pauses = "[sim.stages]\n\"drafter.eval\" = \"2 s\"";
    let shipped = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("configs/sim/one_and_one.toml");
    let text_of = fs::read_to_string(shipped).unwrap();
    assert!(text_of.contains("[sim.stages]"));
    fs::write(place.0.path().join("one.toml"), text_of.replace("[sim.stages]", pauses)).unwrap();
    let begin = Instant::now();
    let (run, iterations) = loop {
        let trained = place.dflash(&["train", "one.toml", "--steps", "24", "--set", "eval.every=12"]);
        let log = text(&trained.stderr);
        assert!(trained.status.success(), "{log}");
        let run = place.0.path().join(text(&trained.stdout).trim());
        let iterations = fs::read_to_string(run.join("iterations.csv")).unwrap();
        let longest_ns = longest_put_ns(&iterations);
        if !log.contains("00 % for room") && longest_ns < 2_000_000_000 {
            break (run, iterations);
        }
        // A machine that stands still for so long looks like an evaluation.
        assert!(begin.elapsed() < PATIENCE, "{longest_ns} ns: {log}");
    };
    let evals = |lane: &str| {
        let total = |line: &&str| line.contains(&format!(",{lane},")) && line.contains(",eval,total,");
        iterations.lines().filter(total).count()
    };
    assert_eq!(evals("drafter:0"), 2);
    assert!(evals("post:0") > 0, "it waited for room for two seconds");
    // Twelve steps, two seconds, twelve steps: the rate is that of the steps.
    let manifest: serde_json::Value = serde_json::from_str(&fs::read_to_string(run.join("run.json")).unwrap()).unwrap();
    let rate = manifest["results"]["tokens_per_s"].as_f64().unwrap();
    let seconds = manifest["results"]["loop_seconds"]["drafter:0"].as_f64().unwrap();
    assert!(seconds > 4.0 && rate > 1.05 * 24.0 * tokens_of_a_step(&iterations) / seconds, "{rate}");
}

/// The longest that a training pass has waited for room.
fn longest_put_ns(iterations: &str) -> u64 {
    let puts = iterations.lines().filter(|line| line.contains(",train,") && line.contains(".put,"));
    puts.map(|line| line.split(',').nth(9).unwrap().parse().unwrap()).max().unwrap()
}

/// Context tokens of the drafter's first training pass.
fn tokens_of_a_step(iterations: &str) -> f64 {
    let total = |line: &&str| line.contains(",drafter:0,") && line.contains(",train,total,");
    iterations.lines().find(total).unwrap().split(',').next_back().unwrap().parse().unwrap()
}

#[test]
fn eight_gpus_stand_on_one_screen() {
    let place = Place::new();
    let trained = place.train("eight_gpus.toml", ("steps = 600", "steps = 600"), "30");
    assert!(trained.status.success(), "{}", text(&trained.stderr));
    let screen = text(&place.dflash(&["top", "--once"]).stdout);
    for (device, lane) in
        (0..6).map(|i| (i, format!("target:{i}"))).chain([(6, "drafter:0".into()), (7, "drafter:1".into())])
    {
        assert!(screen.contains(&format!("sim:{device}")) && screen.contains(&lane), "{lane}: {screen}");
    }
}

#[test]
fn a_worker_that_fails_closes_the_run_with_its_name() {
    let place = Place::new();
    let planted = "[sim]\nfail = \"drafter:1 panics at 3\"\n";
    let trained = place.train("eight_gpus.toml", ("[sim]\n", planted), "100");
    assert_eq!(trained.status.code(), Some(4));
    let error = text(&trained.stderr);
    assert!(error.contains("drafter:1 failed: planted by `fail` in [sim], iteration 3"), "{error}");
    assert!(!error.contains("panicked"), "{error}");
    assert!(text(&place.dflash(&["runs"]).stdout).contains("failed"));
}
