//! Nesting, levels, and guards in the wrong order.

use dflash_profiler::{Kind, Level, Profiler, begin_iteration, level, set_level, span, take_stats};

use crate::support::{Recording, tree};

fn layers(count: usize) {
    for i in 0..count {
        let _span = span!("drafter.layer", index = i);
    }
}

fn step(kind: Kind) {
    let iteration = begin_iteration(kind);
    {
        let _span = span!("drafter.forward");
        layers(2);
    }
    let _span = span!("drafter.loss");
    iteration.tokens(64);
}

#[test]
fn spans_nest() {
    let recording = Recording::start(Level::Layers);
    let lane = recording.profiler.lane("drafter:0", "cpu").enter();
    step(Kind::Warmup);
    {
        let _span = span!("between");
        layers(1);
    }
    step(Kind::Train);
    drop(lane);
    insta::assert_snapshot!(tree(&recording.finish().0), @r"
    drafter:0 on cpu
      0 (warmup, 64 tokens)
        drafter.forward
          drafter.layer [0]
          drafter.layer [1]
        drafter.loss
      1 (train, 64 tokens)
        drafter.forward
          drafter.layer [0]
          drafter.layer [1]
        drafter.loss
      between
        drafter.layer [0]
    ");
}

#[test]
fn levels_change_while_recording() {
    let recording = Recording::start(Level::Stages);
    let lane = recording.profiler.lane("drafter:0", "cpu").enter();
    step(Kind::Train);
    set_level(Level::Off);
    step(Kind::Train);
    set_level(Level::Layers);
    step(Kind::Eval);
    drop(lane);
    insta::assert_snapshot!(tree(&recording.finish().0), @r"
    drafter:0 on cpu
      0 (train, 64 tokens)
        drafter.forward
        drafter.loss
      2 (eval, 64 tokens)
        drafter.forward
          drafter.layer [0]
          drafter.layer [1]
        drafter.loss
    ");
    assert_eq!(level(), Level::Off, "without a profiler there is nothing to record for");
}

#[test]
fn recursion_and_the_same_name_twice() {
    fn dive(left: usize) {
        let _span = span!("dive", index = left);
        if left > 0 {
            dive(left - 1);
        }
    }
    let recording = Recording::start(Level::Layers);
    let lane = recording.profiler.lane("diver", "cpu").enter();
    dive(2);
    dive(99);
    drop(lane);
    let (timeline, totals) = recording.finish();
    assert_eq!(timeline.names, ["dive"]);
    assert_eq!(timeline.spans.iter().map(|s| s.depth).max(), Some(63));
    assert_eq!((totals.written, totals.dropped), (3 + 64 + 1, 36), "what is too deep is counted, and said in a mark");
}

#[test]
fn guards_in_the_wrong_order_are_counted() {
    let recording = Recording::start(Level::Layers);
    let lane = recording.profiler.lane("drafter:0", "cpu").enter();
    let iteration = begin_iteration(Kind::Train);
    let outer = span!("outer");
    let inner = span!("inner");
    drop(outer);
    drop(inner);
    let nested = begin_iteration(Kind::Train);
    drop(nested);
    let outlives = span!("outlives.its.iteration");
    drop(iteration);
    drop(outlives);
    step(Kind::Train);
    drop(lane);
    let (timeline, totals) = recording.finish();
    insta::assert_snapshot!(tree(&timeline), @r"
    drafter:0 on cpu
      0 (train)
          inner
      1 (train, 64 tokens)
        drafter.forward
          drafter.layer [0]
          drafter.layer [1]
        drafter.loss
    ");
    assert_eq!(totals.misplaced, 3);
}

#[test]
fn a_span_that_is_open_when_its_lane_is_left() {
    let recording = Recording::start(Level::Stages);
    let lane = recording.profiler.lane("a", "cpu").enter();
    let span = span!("too.long");
    drop(lane);
    drop(span);
    let (timeline, totals) = recording.finish();
    assert_eq!((timeline.spans.len(), totals.misplaced, totals.open), (0, 1, 0));
}

#[test]
fn lanes_rest_while_another_is_entered_and_go_on_counting() {
    let recording = Recording::start(Level::Stages);
    let outer = recording.profiler.lane("outer", "cpu").enter();
    drop(begin_iteration(Kind::Train));
    for _ in 0..2 {
        let _eval = recording.profiler.lane("eval", "cpu").enter();
        let _iteration = begin_iteration(Kind::Eval);
        let _span = span!("eval.draft");
    }
    drop(begin_iteration(Kind::Train));
    drop(outer);
    insta::assert_snapshot!(tree(&recording.finish().0), @r"
    outer on cpu
      0 (train)
      1 (train)
    eval on cpu
      0 (eval)
        eval.draft
      1 (eval)
        eval.draft
    ");
}

#[test]
fn nothing_is_recorded_without_a_lane_or_a_profiler() {
    let recording = Recording::start(Level::Layers);
    step(Kind::Train);
    let disabled = Profiler::disabled();
    let lane = disabled.lane("a", "cpu").enter();
    step(Kind::Train);
    disabled.counter("c", "items").record(1.0);
    assert!(take_stats().is_empty());
    drop(lane);
    assert_eq!(disabled.finish().emitted, 0);
    assert_eq!(recording.finish().1.emitted, 0);
}
