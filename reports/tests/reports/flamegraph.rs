//! Flame graphs: nothing is lost, nothing is misread.

use crate::support::{Builder, MS, small_run};
use dflash_reports::flamegraph::{Options, Time, folded, folded_text, svg};
use dflash_reports::stages::{Window, stage_table};
use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::Kind;

#[test]
fn frames_add_up_to_the_iterations() {
    let timeline = small_run();
    let stacks = folded(&timeline, &Window::default(), Time::Wall).unwrap();
    let whole: u64 = timeline.iterations.iter().map(|i| i.duration_ns).sum();
    assert_eq!(stacks.values().sum::<u64>(), whole);
    let train: u64 = stacks.iter().filter(|(stack, _)| !stack.contains(";[")).map(|(_, ns)| ns).sum();
    let table = stage_table(&timeline, &Window::default());
    assert_eq!(train, table.lanes.iter().map(|l| l.total.total_ns).sum::<u64>(), "as the stage table says");
}

#[test]
fn folded_stacks() {
    insta::assert_snapshot!(folded_text(&small_run(), &Window::default(), Time::Wall).unwrap(), @r"
    drafter:0;[warmup];drafter.forward 900000000
    drafter:0;drafter.forward 20000000
    drafter:0;drafter.forward;drafter.layer[0] 20000000
    drafter:0;drafter.forward;drafter.layer[1] 20190000
    drafter:0;drafter.loss 60000000
    drafter:0;drafter.wait 400000
    drafter:0;residue 1000000
    target:0;residue 200000
    target:0;target.forward 121900000
    target:0;target.put 60000000
    ");
}

#[test]
fn every_line_reaches_the_graph() {
    let options = Options { no_javascript: true, ..Options::default() };
    let text = String::from_utf8(svg(&small_run(), &options).unwrap()).unwrap();
    for frame in ["target:0", "target.put", "residue", "drafter.layer[0]", "drafter.layer[1]", "[warmup]"] {
        assert!(text.contains(&format!("<title>{frame} (")), "{frame}");
    }
    assert!(!text.contains("://") || !text.contains("src=\"http"), "needs no network");
    assert_eq!(text.as_bytes(), svg(&small_run(), &options).unwrap(), "the same run gives the same bytes");
}

#[test]
fn names_cannot_break_the_graph() {
    let b = Builder::new().lane("a;b <script>").iteration(Kind::Train, 1, |b| {
        b.span("layer 3", MS).span("x\u{1b}[31m\n 7", MS).span("", MS);
    });
    let stacks = folded(&b.timeline, &Window::default(), Time::Wall).unwrap();
    assert_eq!(stacks.values().sum::<u64>(), 3 * MS + 1);
    let names: Vec<&str> = stacks.keys().map(String::as_str).collect();
    let lane = "a:b_<script>";
    let expected = ["?", "layer_3", "residue", "x\u{fffd}[31m__7"].map(|stage| format!("{lane};{stage}"));
    assert_eq!(names, expected);
    let text = String::from_utf8(svg(&b.timeline, &Options::default()).unwrap()).unwrap();
    assert!(!text.contains("_<script>"), "escaped in the SVG");
}

#[test]
fn an_empty_run_says_so() {
    let error = svg(&Timeline::default(), &Options::default()).unwrap_err().to_string();
    assert_eq!(error, "no finished iteration was recorded; wait until the run has done one, or look at another run");
}
