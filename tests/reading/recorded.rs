//! A run recorded on an H200 (tests/data/recordings/h200: SmolLM2-135M-Instruct, 1,500 steps), read on any machine.

use super::support::dflash;
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
