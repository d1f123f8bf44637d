//! The pipeline as a whole: ages of hand-offs, goodput, throttling, lanes of one role.

use crate::support::{Builder, MS};
use dflash_reports::goodput::goodput;
use dflash_reports::gpu::gpus;
use dflash_reports::handoffs::handoffs;
use dflash_reports::report::Throughput;
use dflash_reports::stages::stage_table;
use dflash_reports::stragglers::peers;
use dflash_reports::timeline::Timeline;
use dflash_reports::timeline::record::{Flow, FlowEnd, Kind, LaneId};
use dflash_reports::window::Window;

fn drafter(kinds: &[(Kind, u64, u64)]) -> Builder {
    let mut b = Builder::new().lane("drafter:0");
    for (kind, wait_ms, work_ms) in kinds {
        b = b.iteration(*kind, 0, |b| {
            b.span("drafter.wait", wait_ms * MS).span("drafter.forward", work_ms * MS);
        });
    }
    b
}

#[test]
fn goodput_adds_up_and_names_every_kind() {
    let kinds = [
        (Kind::Warmup, 1, 9),
        (Kind::Train, 2, 8),
        (Kind::Bare, 0, 10),
        (Kind::Checkpoint, 0, 30),
        (Kind::Eval, 0, 40),
        (Kind::Drain, 5, 0),
    ];
    let found = goodput(&drafter(&kinds).timeline, &Window::default()).unwrap();
    assert_eq!(found.parts().iter().map(|(_, ns)| ns / MS).collect::<Vec<_>>(), [18, 10, 30, 40, 7, 0, 0]);
    assert_eq!(found.parts().iter().map(|(_, ns)| ns).sum::<u64>(), found.total_ns);
    assert_eq!(goodput(&Timeline::default(), &Window::default()), None);
}

/// Two steps of 100 tokens in 20 ms; of the evaluations, only the one between them is in their time.
#[test]
fn evaluations_are_no_part_of_the_rate() {
    let kinds =
        [(Kind::Eval, 0, 70), (Kind::Train, 0, 10), (Kind::Eval, 0, 40), (Kind::Train, 0, 10), (Kind::Eval, 0, 90)];
    let found = Throughput::of(&stage_table(&drafter(&kinds).timeline, &Window::default()));
    assert_eq!((found.tokens, found.tokens_per_s), (Some(200), Some(10_000.0)));
    assert_eq!(found.wall_ns, Some(60 * MS));
}

#[test]
fn a_restart_loses_what_it_does_again_and_the_time_between() {
    let train = [(Kind::Train, 0, 10); 5];
    // Iterations 0 to 4, then, 100 ms later, 3 to 5: 3 and 4 were done twice.
    let end = drafter(&train).timeline.iterations[4].begin_ns + 10_000_000;
    let mut b = drafter(&train).at(end + 100_000_000).numbered(3);
    for _ in 0..3 {
        b = b.iteration(Kind::Train, 0, |b| {
            b.span("drafter.forward", 10 * MS);
        });
    }
    let found = goodput(&b.timeline, &Window::default()).unwrap();
    assert_eq!((found.lost_ns / MS, found.productive_ns / MS, found.restarts), (20 + 100, 60, 1));
    assert_eq!(found.total_ns / MS, 180);
}

#[test]
fn ages_run_from_the_hand_over_to_the_taking() {
    let mut timeline = Builder::new().lane("loader").lane("target:0").timeline;
    let flow = |id, end, lane, ms: i64| Flow { id, end, lane: LaneId(lane), time_ns: ms * 1_000_000 };
    timeline.flows = vec![
        flow(1, FlowEnd::Put, 0, 0),
        flow(2, FlowEnd::Put, 0, 1),
        flow(1, FlowEnd::Take, 1, 4),
        flow(9, FlowEnd::Take, 1, 5),
        flow(2, FlowEnd::Take, 1, 11),
        flow(3, FlowEnd::Put, 0, 12),
        flow(3, FlowEnd::Put, 0, 13),
    ];
    let of = |window: &Window| handoffs(&timeline, window, &stage_table(&timeline, window));
    let found = of(&Window::default());
    assert_eq!((found.never_put, found.never_taken), (1, 2), "one was put again after a restart");
    let [pair] = found.pairs.as_slice() else { panic!("{found:?}") };
    assert_eq!((pair.from.as_str(), pair.to.as_str()), ("loader", "target:0"));
    assert_eq!((pair.age.count, pair.age.p50_ns, pair.age.max_ns), (2, 4_000_000, 10_000_000));
    assert_eq!(pair.put_share, None, "the loader has no iteration");
    let late = of(&Window { from_ns: Some(6_000_000), ..Window::default() });
    assert_eq!((late.pairs[0].age.count, late.never_put), (1, 0), "the item was put before the window");
}

#[test]
fn throttled_time_is_held_until_the_next_reading() {
    let second = 1_000_000_000;
    let readings = [(0, 1.0), (second, f64::from(0x4)), (3 * second, f64::from(0x24)), (4 * second, 0.0)];
    let b = Builder::new().readings("gpu.cuda:0.throttle", "bits", &readings);
    let [gpu] = gpus(&b.timeline, &Window::default()).try_into().unwrap();
    assert_eq!((gpu.throttled_share, gpu.throttled_ns), (Some(0.5), Some(3 * second as u64)));
    let reasons: Vec<_> =
        gpu.throttle_reasons.iter().map(|reason| (reason.reason, reason.ns / second as u64)).collect();
    assert_eq!(reasons, [("power cap", 3), ("temperature (software)", 1)]);
}

#[test]
fn lanes_that_wait_for_each_other_are_told_apart_by_their_own_work() {
    let mut b = Builder::new();
    for (lane, work) in [("drafter:0", 8), ("drafter:1", 10), ("drafter:2", 8)] {
        b = b.lane(lane);
        for _ in 0..20 {
            b = b.iteration(Kind::Train, 0, |b| {
                b.span("drafter.forward", work * MS).span("drafter.reduce", (12 - work) * MS);
            });
        }
    }
    let found = peers(&b.timeline, &Window::default());
    let named: Vec<_> = found.iter().map(|peer| (peer.lane.as_str(), peer.slowest, peer.straggler)).collect();
    assert_eq!(named, [("drafter:0", 0, false), ("drafter:1", 20, true), ("drafter:2", 0, false)]);
    assert!((found[1].excess - 0.25).abs() < 1e-9);
    assert!(found.iter().all(|peer| peer.iterations == 20));
}
