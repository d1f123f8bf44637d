//! A run recorded on an H200 (tests/data/recordings/h200: SmolLM2-135M-Instruct, 1,500 steps), read on any machine.

use super::support::dflash;
use dflash_reports::timeline::RunDir;
use std::path::Path;

const RUN: &str = "tests/data/recordings/h200";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn stdout(arguments: &[&str]) -> String {
    let said = dflash(root(), arguments);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    said.stdout
}

#[test]
fn its_report() {
    insta::assert_snapshot!("recorded_report", stdout(&["report", RUN]));
}

#[test]
fn its_totals_account_for_every_record() {
    insta::assert_snapshot!("recorded_totals", stdout(&["dump", RUN, "--totals"]));
}

#[test]
fn its_flame_graph_holds_every_lane_and_the_residue() {
    let folded = stdout(&["flamegraph", RUN, "--format", "folded"]);
    for stack in ["drafter:0;drafter.backward ", "target:0;target.forward ", "loader;load.put ", "drafter:0;residue "] {
        assert!(folded.lines().any(|line| line.starts_with(stack)), "no {stack:?} in\n{folded}");
    }
}

/// The picture in the README is a frame of this recording. `DFLASH_BLESS=1` draws it anew.
#[test]
fn the_picture_in_the_readme_is_what_top_shows() {
    let picture = stdout(&["top", RUN, "--format", "svg", "--size", "120x36"]);
    let stored = root().join("docs/images/top.svg");
    if std::env::var_os("DFLASH_BLESS").is_some() {
        std::fs::create_dir_all(stored.parent().unwrap()).unwrap();
        std::fs::write(&stored, &picture).unwrap();
    }
    let same = std::fs::read_to_string(stored).unwrap_or_default() == picture;
    assert!(same, "top draws another picture now: look at it, and run the test with DFLASH_BLESS=1");
}

/// Target and drafter on one H200, each on streams of its own (SmolLM2-135M's shape, random weights, texts of many lengths,
/// 500 steps), with `dflash ctl` stacks, cpu, kernels, level and mark in its midst: device times, stacks under their spans, an
/// account for each lane, and no memory asked of the device once it runs.
#[test]
fn a_run_with_device_times_is_whole() {
    const RUN: &str = "tests/data/recordings/h200-device";
    insta::assert_snapshot!("recorded_device_totals", stdout(&["dump", RUN, "--totals"]));
    insta::assert_snapshot!("recorded_device_report", stdout(&["report", RUN]));
    let folded = stdout(&["flamegraph", RUN, "--time", "cpu", "--format", "folded"]);
    assert!(folded.lines().any(|line| line.starts_with("drafter:0;drafter.backward;")), "{folded}");
    let timeline = dflash_reports::timeline::read(&RunDir::open(root().join(RUN)).unwrap()).unwrap();
    assert!(timeline.device_anchors.len() > 4, "the device's clock was compared with the host's");
    let launched = timeline.spans.iter().filter_map(|span| Some((span, span.device?)));
    // The event is recorded before the host's clock is read, and a thread may be held up between the two (the driver's
    // locks, the scheduler): so a span seldom, and barely, begins on the device before it does on the host. A tracer that
    // attaches itself holds the driver for milliseconds: one span began then.
    let leads: Vec<i64> = launched.map(|(span, device)| span.begin_ns - device.begin_ns).collect();
    assert!(leads.len() > 5_000 && leads.iter().filter(|lead| **lead >= 100_000).count() <= 1);
    assert!(stdout(&["report", RUN]).contains("device allocations after iteration 20: 0\n"));
    assert!(leads.iter().filter(|lead| **lead > 10_000).count() * 100 < leads.len());
}

/// The whole pipeline at Qwen3-8B's shapes (configs/bench/one-gpu-8b.toml, 120 steps).
#[test]
fn the_pipeline_at_its_size_is_limited_by_the_drafter_and_asks_for_no_memory() {
    const RUN: &str = "tests/data/recordings/h200-pipeline-8b";
    insta::assert_snapshot!("recorded_pipeline_report", stdout(&["report", RUN]));
    let report: serde_json::Value = serde_json::from_str(&stdout(&["report", RUN, "--format", "json"])).unwrap();
    let lane = &report["limiting"][0];
    assert_eq!(lane["lane"], "drafter:0");
    assert!(lane["gaps"].as_f64().is_some_and(|gaps| gaps < 0.03), "{lane}");
    assert!(report["allocators"].as_array().unwrap().iter().all(|a| a["late_device_allocations"] == 0), "{report}");
}

/// Recordings of step_cost, in the format's first version: a drafter of Qwen3-8B's shapes, and one of 0.6B's.
#[test]
fn steps_of_big_and_small_shapes_have_device_times() {
    for (run, stage) in [("h200-step-8b", "drafter.backward"), ("h200-step-0.6b", "drafter.step")] {
        let run = format!("tests/data/recordings/{run}");
        let json: serde_json::Value = serde_json::from_str(&stdout(&["report", &run, "--format", "json"])).unwrap();
        let rows = json["stages"]["lanes"][0]["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["stage"] == stage).unwrap();
        assert_eq!(row["device"]["count"], row["host"]["count"], "{row}");
    }
}
