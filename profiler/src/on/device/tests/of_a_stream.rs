//! The events of a stream: asked about seldom, timed in their order, given up where they are lost.

use std::time::Duration;

use super::super::shared::Moment;
use super::Bench;

#[test]
fn streams_do_not_wait_for_each_other() {
    let mut bench = Bench::new(0.0);
    let (slow, quick) = (bench.device.stream(0), bench.device.stream(1));
    slow.work(Duration::from_secs(3));
    let (blocked, _) = bench.moment(&slow);
    let (behind, _) = bench.moment(&slow);
    let (free, _) = bench.moment(&quick);
    bench.pass(Duration::from_secs(1));
    let numbers = |times: Vec<(u64, Option<Moment>)>| times.iter().map(|(n, _)| *n).collect::<Vec<_>>();
    assert_eq!(numbers(bench.times()), [free]);
    bench.pass(Duration::from_secs(3));
    assert_eq!(numbers(bench.times()), [blocked, behind]);
}

/// A question costs a real device's driver ten times what a difference does, and holds up the lane's own calls.
#[test]
fn few_events_are_asked_whether_they_are_ready() {
    let mut bench = Bench::new(0.0);
    let stream = bench.device.stream(0);
    bench.pass(Duration::from_secs(20));
    let asked_for = |bench: &mut Bench, events: u64, passed: usize| {
        for event in 0..events {
            if event == passed as u64 {
                stream.work(Duration::from_millis(300));
            }
            bench.moment(&stream);
        }
        bench.clock.advance(Duration::from_millis(5));
        let before = bench.device.asked();
        bench.collector.tick();
        let asked = bench.device.asked() - before;
        assert_eq!(bench.times().len(), passed);
        bench.clock.advance(Duration::from_millis(300));
        bench.collector.tick();
        asked
    };
    assert_eq!(asked_for(&mut bench, 60, 60), 1, "all are ready");
    bench.times();
    let some = asked_for(&mut bench, 60, 29);
    assert!(some <= 7, "{some} questions for 60 events");
    bench.times();
    let none = asked_for(&mut bench, 60, 0);
    assert!(none <= 7, "{none} questions for 60 events");
}

#[test]
fn a_lost_event_is_given_up_and_the_stream_goes_on() {
    let mut bench = Bench::new(0.0);
    let stream = bench.device.stream(0);
    bench.pass(Duration::from_secs(1));
    let known = |bench: &Bench| bench.times().iter().map(|(n, m)| (*n, m.is_some())).collect::<Vec<_>>();
    let (before, _) = bench.moment(&stream);
    bench.device.lose(1);
    let (lost, _) = bench.moment(&stream);
    bench.pass(Duration::from_secs(7));
    assert_eq!(known(&bench), [(before, true)], "nobody can know yet");
    bench.pass(Duration::from_secs(2));
    assert_eq!(known(&bench), [(lost, false)], "it has had its time");
    bench.device.lose(1);
    let (lost, _) = bench.moment(&stream);
    stream.work(Duration::from_millis(5));
    let (after, _) = bench.moment(&stream);
    bench.pass(Duration::from_millis(100));
    assert_eq!(known(&bench), [(lost, false), (after, true)], "the stream has passed it");
    assert_eq!(bench.hub.remarks.counts().0, 0);
}
