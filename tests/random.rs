//! Trainings for measuring: random weights, random texts, nothing kept.
#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::Path;
use std::process::{Command, Output};

/// Six targets and two drafters, as on eight GPUs, where a test can have them.
const CONFIG: &str = r#"
[run]
name = "random"
[model]
dtype = "float32"
[random]
target = "tiny"
tokens = 48
samples = 12
[drafter]
layers = 2
block_size = 4
mask_token_id = 383
[train]
steps = 6
batch = 1
anchors = 4
[pipeline]
target_devices = ["cpu", "cpu", "cpu", "cpu", "cpu", "cpu"]
drafter_devices = ["cpu", "cpu"]
threads = 1
[profile]
log_every = 2
warmup_iterations = 1
"#;

fn dflash(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dflash"));
    command.args(arguments).current_dir(dir).env_remove("DFLASH_RUNS").env_remove("RUST_BACKTRACE").output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn random_weights_are_trained_and_reported_and_leave_no_drafter() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("random.toml"), CONFIG).unwrap();
    let trained = dflash(dir.path(), &["train", "random.toml"]);
    assert!(trained.status.success(), "{}", text(&trained.stderr));
    assert!(
        text(&trained.stderr).contains("6 steps on random weights; no drafter is kept"),
        "{}",
        text(&trained.stderr)
    );
    let run = dir.path().join(text(&trained.stdout).trim());
    assert!(!run.join("checkpoints").exists(), "nothing is kept");
    let metrics = std::fs::read_to_string(run.join("metrics.csv")).unwrap();
    let losses = metrics.lines().skip(1).map(|line| line.split(',').nth(4).unwrap().parse::<f64>().unwrap());
    // Nothing can be learnt of noise: the loss stays near that of guessing among 384 ids.
    assert!(losses.clone().count() == 3 && losses.into_iter().all(|loss| (4.0..9.0).contains(&loss)), "{metrics}");
    let report = text(&dflash(dir.path(), &["report"]).stdout);
    for lane in (0..6).map(|i| format!("target:{i} on cpu")).chain((0..2).map(|i| format!("drafter:{i} on cpu"))) {
        assert!(report.contains(&lane), "{lane}: {report}");
    }
}

#[test]
fn there_is_nothing_to_prepare_and_nothing_to_go_on_from() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("random.toml"), CONFIG).unwrap();
    let refused = dflash(dir.path(), &["prepare", "random.toml"]);
    assert_eq!(refused.status.code(), Some(2), "{}", text(&refused.stderr));
    assert!(text(&refused.stderr).contains("with [random] there is nothing to prepare"), "{}", text(&refused.stderr));
    let trained = dflash(dir.path(), &["train", "random.toml", "--steps", "2"]);
    let run = text(&trained.stdout).trim().to_owned();
    for arguments in [&["train", "--resume", &run][..], &["eval", &run]] {
        let refused = dflash(dir.path(), arguments);
        assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {}", text(&refused.stderr));
        let why = text(&refused.stderr);
        assert!(why.contains("random weights keeps neither checkpoints nor a drafter"), "{arguments:?}: {why}");
    }
}
