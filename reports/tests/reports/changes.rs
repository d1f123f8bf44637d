//! Flame graphs of what changed between two runs.

use crate::support::{Builder, MS, small_run};
use dflash_reports::flamegraph::{By, Change, Graph, Options, Time};
use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::Kind;
use dflash_reports::window::Window;

pub fn wall(timeline: &Timeline) -> Graph {
    Graph::of(timeline, &Window::default(), Time::Wall, By::Lane).unwrap()
}

pub fn bare() -> Options {
    Options { no_javascript: true, ..Options::default() }
}

pub fn picture(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

/// Titles of a picture's frames that begin so.
pub fn titles<'a>(svg: &'a str, begin: &str) -> Vec<&'a str> {
    let titles = svg.split("<title>").skip(1).filter_map(|rest| rest.split("</title>").next());
    titles.filter(|title| title.starts_with(begin)).collect()
}

fn iterations(count: usize, forward: u64, layer: u64) -> Timeline {
    let mut b = Builder::new().lane("drafter:0");
    for _ in 0..count {
        b = b.iteration(Kind::Train, MS, |b| {
            b.nested("drafter.forward", forward, |b| {
                b.indexed("drafter.layer", 0, layer);
            });
        });
    }
    b.timeline
}

#[test]
fn the_root_prints_the_change_of_the_totals() {
    // Twice as many iterations, in which the layer takes 3 ms instead of 1 and the forward's own time 2 instead of 3.
    let change = Change::between(&wall(&iterations(10, 3 * MS, MS)), &wall(&iterations(20, 2 * MS, 3 * MS)));
    let (before, after) = change.totals();
    assert_eq!((before, after), (20 * 5 * MS, 20 * 6 * MS), "the base as if it had run for 20 iterations, too");
    let svg = picture(change.svg(&bare()).unwrap());
    let percent = |ns: f64| format!("{:+.2}%)", 100.0 * ns / after as f64);
    let change_of = |name: &str, ns: f64| {
        let found = titles(&svg, name);
        assert!(found.len() == 1 && found[0].ends_with(&percent(ns)), "{name}: {found:?}, expected {}", percent(ns));
    };
    change_of("total (", after as f64 - before as f64);
    change_of("drafter:0 (", 20e6);
    change_of("drafter.forward (", 20e6);
    change_of("drafter.layer[0] (", 40e6);
    assert!(titles(&svg, "residue (")[0].ends_with("; 0.00%)"), "what did not change");
    let mut folded = Vec::new();
    change.write_folded(&mut folded).unwrap();
    insta::assert_snapshot!(String::from_utf8(folded).unwrap(), @r"
    total;drafter:0;drafter.forward 60000000 40000000
    total;drafter:0;drafter.forward;drafter.layer[0] 20000000 60000000
    total;drafter:0;residue 20000000 20000000
    ");
}

#[test]
fn a_run_against_itself_has_not_changed() {
    let graph = wall(&small_run());
    let change = Change::between(&graph, &graph);
    assert_eq!((change.totals().0, change.vanished()), (graph.total(), 0));
    let svg = picture(change.svg(&bare()).unwrap());
    let frames = titles(&svg, "");
    assert!(
        frames.len() > 5 && frames.iter().skip(1).filter(|t| !t.starts_with("all ")).all(|t| t.ends_with("; 0.00%)")),
        "{frames:?}"
    );
}

#[test]
fn what_only_the_base_has_counts_in_its_parents() {
    let with = wall(&iterations(10, MS, 2 * MS));
    let mut b = Builder::new().lane("drafter:0");
    for _ in 0..10 {
        b = b.iteration(Kind::Train, MS, |b| {
            b.span("drafter.forward", MS);
        });
    }
    let change = Change::between(&with, &wall(&b.timeline));
    assert_eq!((change.vanished(), change.totals()), (1, (40 * MS, 20 * MS)));
    let svg = picture(change.svg(&bare()).unwrap());
    assert!(titles(&svg, "total (")[0].ends_with("-100.00%)"), "{svg}");
}
