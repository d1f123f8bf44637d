//! Which crate may depend on which: ARCHITECTURE.md's arrows, and no other.

use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

/// "a depends on b", for crates of this workspace.
const ARROWS: [(&str, &str); 16] = [
    ("dflash", "dflash-reports"),
    ("dflash", "dflash-sys"),
    ("dflash", "dflash-trainer"),
    ("dflash", "dflash-tui"),
    ("dflash-benches", "dflash-profiler"),
    ("dflash-benches", "dflash-timeline"),
    ("dflash-profiler", "dflash-sys"),
    ("dflash-profiler", "dflash-timeline"),
    ("dflash-reports", "dflash-timeline"),
    ("dflash-torch", "dflash-sys"),
    ("dflash-trainer", "dflash-profiler"),
    ("dflash-trainer", "dflash-torch"),
    ("dflash-tui", "dflash-reports"),
    // Binding libtorch is the write side's alone.
    ("dflash", "torch-sys"),
    ("dflash-torch", "tch"),
    ("dflash-trainer", "tch"),
];

#[test]
fn crates_depend_on_each_other_as_the_architecture_says() {
    let wanted: BTreeSet<_> = ARROWS.iter().map(|(a, b)| (a.to_string(), b.to_string())).collect();
    let found: BTreeSet<_> = edges()
        .into_iter()
        // The build script needs torch-sys wherever libtorch is linked; it is an arrow only where tch is none.
        .filter(|(a, b)| b.starts_with("dflash") || b == "tch" || (b == "torch-sys" && a == "dflash"))
        .collect();
    let stray: Vec<_> = found.difference(&wanted).collect();
    let missing: Vec<_> = wanted.difference(&found).collect();
    assert!(stray.is_empty(), "not in the architecture: {stray:?}");
    assert!(missing.is_empty(), "in the architecture, but gone: {missing:?}");
}

/// Every normal dependency of every package of the workspace.
fn edges() -> Vec<(String, String)> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let packages = metadata["packages"].as_array().expect("packages");
    packages
        .iter()
        .flat_map(|package| {
            let dependencies = package["dependencies"].as_array().expect("dependencies");
            let normal = dependencies.iter().filter(|d| d["kind"].is_null());
            normal.map(|d| (text(&package["name"]), text(&d["name"]))).collect::<Vec<_>>()
        })
        .collect()
}

/// A program built with `--no-default-features --features train` has no instrumentation in it: whoever else depends on the
/// profiler must not bring the feature back. (What is left of a span then is looked at in profiler/tests/machine_code.rs.)
#[test]
fn built_without_spans_the_profiler_has_none() {
    let features = |of: &[&str]| {
        let mut command = Command::new(env!("CARGO"));
        command.args(["tree", "--offline", "--locked", "-p", "dflash", "--format", "{p} [{f}]"]).args(of);
        command.args(["--edges", "normal", "--invert", "dflash-profiler"]).current_dir(env!("CARGO_MANIFEST_DIR"));
        let output = command.output().expect("cargo runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().next().unwrap_or_default().to_owned()
    };
    let without = features(&["--no-default-features", "--features", "train"]);
    assert!(without.starts_with("dflash-profiler ") && without.ends_with(" []"), "{without}");
    assert!(features(&["--features", "train"]).contains("spans"), "with it, it is there");
}
